// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
    function balanceOf(address account) external view returns (uint256);
}

/// @title VoucherDesk
/// @notice Pays tokens against vouchers that the issuer signs off-chain.
contract VoucherDesk {
    bytes32 public constant VOUCHER_TYPEHASH =
        keccak256("Voucher(uint256 voucherId,address account,uint256 amount,uint256 deadline)");
    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,uint256 chainId,address verifyingContract)");
    uint256 private constant HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0;

    IERC20 public immutable token;
    address public immutable manager;
    address public issuer;
    bool public closed;
    uint256 public totalPaid;
    mapping(address => uint256) public paidTo;

    event Redeemed(uint256 indexed voucherId, address indexed account, uint256 amount);
    event IssuerChanged(address indexed issuer);

    modifier onlyManager() {
        require(msg.sender == manager, "not manager");
        _;
    }

    constructor(IERC20 token_, address issuer_) {
        require(issuer_ != address(0), "zero issuer");
        token = token_;
        issuer = issuer_;
        manager = msg.sender;
    }

    /// @notice Pays a voucher to the account it names.
    function redeem(
        uint256 voucherId,
        address account,
        uint256 amount,
        uint256 deadline,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        require(!closed, "desk closed");
        require(block.timestamp <= deadline, "voucher expired");
        bytes32 digest = voucherDigest(voucherId, account, amount, deadline);
        require(_recover(digest, v, r, s) == issuer, "wrong signer");

        paidTo[account] += amount;
        totalPaid += amount;
        emit Redeemed(voucherId, account, amount);
        require(token.transfer(account, amount), "transfer failed");
    }

    /// @notice Message that the issuer signs for a voucher.
    function voucherDigest(uint256 voucherId, address account, uint256 amount, uint256 deadline)
        public
        view
        returns (bytes32)
    {
        bytes32 message = keccak256(abi.encode(VOUCHER_TYPEHASH, voucherId, account, amount, deadline));
        return keccak256(abi.encodePacked("\x19\x01", domainSeparator(), message));
    }

    function domainSeparator() public view returns (bytes32) {
        return keccak256(abi.encode(DOMAIN_TYPEHASH, keccak256("VoucherDesk"), block.chainid, address(this)));
    }

    /// @notice Replaces the issuer; vouchers of the former issuer stop being accepted.
    function setIssuer(address newIssuer) external onlyManager {
        require(newIssuer != address(0), "zero issuer");
        issuer = newIssuer;
        emit IssuerChanged(newIssuer);
    }

    /// @notice Ends the programme and returns the remaining tokens to the manager.
    function close() external onlyManager {
        require(!closed, "desk closed");
        closed = true;
        require(token.transfer(manager, token.balanceOf(address(this))), "transfer failed");
    }

    function _recover(bytes32 digest, uint8 v, bytes32 r, bytes32 s) private pure returns (address signer) {
        require(uint256(s) <= HALF_ORDER, "high s");
        signer = ecrecover(digest, v, r, s);
        require(signer != address(0), "invalid signature");
    }
}
