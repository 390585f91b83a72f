// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title BountyFund
/// @notice Pays bounties in ether to contributors who hold a permission signed by a reviewer.
contract BountyFund {
    bytes32 private constant CLAIM_TYPEHASH =
        keccak256("Claim(address contributor,uint256 amount,bytes32 workId,uint256 deadline)");
    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    uint256 public constant MAX_BOUNTY = 5 ether;
    uint256 private constant HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0;

    address public immutable maintainer;
    uint256 public paidTotal;

    mapping(address => bool) public isReviewer;
    mapping(bytes32 => bool) public usedDigests;

    event Funded(address indexed from, uint256 amount);
    event ReviewerSet(address indexed reviewer, bool active);
    event BountyPaid(address indexed contributor, bytes32 indexed workId, uint256 amount);

    error NotMaintainer();
    error Expired(uint256 deadline);
    error AlreadyUsed();
    error NotReviewer(address signer);
    error BadSignature();
    error TransferFailed();

    constructor() {
        maintainer = msg.sender;
    }

    receive() external payable {
        emit Funded(msg.sender, msg.value);
    }

    /// @notice Appoints or dismisses a reviewer.
    function setReviewer(address reviewer, bool active) external {
        if (msg.sender != maintainer) revert NotMaintainer();
        require(reviewer != address(0), "zero reviewer");
        isReviewer[reviewer] = active;
        emit ReviewerSet(reviewer, active);
    }

    /// @notice Pays the caller the bounty for a piece of work.
    /// @param workId Identifier of the work; a reviewer signs at most one permission for it.
    /// @param signature Sixty-five bytes r, s, v over `claimDigest`.
    function claim(uint256 amount, bytes32 workId, uint256 deadline, bytes calldata signature) external {
        if (block.timestamp > deadline) revert Expired(deadline);
        require(amount <= MAX_BOUNTY, "above limit");
        bytes32 digest = claimDigest(msg.sender, amount, workId, deadline);

        if (usedDigests[digest]) revert AlreadyUsed();
        address signer = _recover(digest, signature);
        if (!isReviewer[signer]) revert NotReviewer(signer);

        usedDigests[digest] = true;
        paidTotal += amount;
        emit BountyPaid(msg.sender, workId, amount);
        (bool sent, ) = msg.sender.call{value: amount}("");
        if (!sent) revert TransferFailed();
    }

    /// @notice Message that a reviewer signs.
    function claimDigest(address contributor, uint256 amount, bytes32 workId, uint256 deadline)
        public
        view
        returns (bytes32)
    {
        bytes32 message = keccak256(abi.encode(CLAIM_TYPEHASH, contributor, amount, workId, deadline));
        return keccak256(abi.encodePacked("\x19\x01", domainSeparator(), message));
    }

    function domainSeparator() public view returns (bytes32) {
        return keccak256(
            abi.encode(DOMAIN_TYPEHASH, keccak256("BountyFund"), keccak256("1"), block.chainid, address(this))
        );
    }

    function _recover(bytes32 digest, bytes calldata signature) private pure returns (address signer) {
        if (signature.length != 65) revert BadSignature();
        bytes32 r = bytes32(signature[0:32]);
        bytes32 s = bytes32(signature[32:64]);
        uint8 v = uint8(signature[64]);
        if ((v != 27 && v != 28) || uint256(s) > HALF_ORDER) revert BadSignature();
        signer = ecrecover(digest, v, r, s);
        if (signer == address(0)) revert BadSignature();
    }
}
