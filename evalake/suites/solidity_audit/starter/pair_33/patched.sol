// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title DonationProxy
/// @notice Forwards calls to an implementation that its admin can replace.
contract DonationProxy {
    bytes32 private constant IMPLEMENTATION_SLOT = bytes32(uint256(keccak256("eip1967.proxy.implementation")) - 1);
    bytes32 private constant ADMIN_SLOT = bytes32(uint256(keccak256("eip1967.proxy.admin")) - 1);

    event Upgraded(address indexed implementation);
    event AdminChanged(address indexed admin);

    constructor(address implementation_) {
        _write(ADMIN_SLOT, msg.sender);
        _setImplementation(implementation_);
    }

    receive() external payable {
        _delegate();
    }

    fallback() external payable {
        _delegate();
    }

    /// @notice Replaces the implementation.
    function upgradeTo(address newImplementation) external {
        require(msg.sender == _read(ADMIN_SLOT), "not admin");
        _setImplementation(newImplementation);
    }

    /// @notice Hands the proxy over to another admin.
    function changeAdmin(address newAdmin) external {
        require(msg.sender == _read(ADMIN_SLOT), "not admin");
        require(newAdmin != address(0), "zero admin");
        _write(ADMIN_SLOT, newAdmin);
        emit AdminChanged(newAdmin);
    }

    function _setImplementation(address newImplementation) private {
        require(newImplementation.code.length > 0, "no code");
        _write(IMPLEMENTATION_SLOT, newImplementation);
        emit Upgraded(newImplementation);
    }

    function _delegate() private {
        address target = _read(IMPLEMENTATION_SLOT);
        assembly {
            calldatacopy(0, 0, calldatasize())
            let ok := delegatecall(gas(), target, 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            switch ok
            case 0 { revert(0, returndatasize()) }
            default { return(0, returndatasize()) }
        }
    }

    function _read(bytes32 slot) private view returns (address value) {
        assembly {
            value := sload(slot)
        }
    }

    function _write(bytes32 slot, address value) private {
        assembly {
            sstore(slot, value)
        }
    }
}

/// @title DonationBox
/// @notice Collects ether for one beneficiary, who can take it out once a month.
contract DonationBox {
    address public lastDonor;
    mapping(address => uint256) public donatedBy;
    uint256 public totalDonated;
    uint256 public lastPayoutAt;

    address public immutable beneficiary;

    event Donated(address indexed donor, uint256 amount, string message);
    event PaidOut(uint256 amount);

    constructor(address beneficiary_) {
        require(beneficiary_ != address(0), "zero beneficiary");
        beneficiary = beneficiary_;
    }

    receive() external payable {
        donate("");
    }

    /// @notice Donates the ether sent, with a message.
    function donate(string memory message) public payable {
        require(msg.value > 0, "nothing donated");
        lastDonor = msg.sender;
        donatedBy[msg.sender] += msg.value;
        totalDonated += msg.value;
        emit Donated(msg.sender, msg.value, message);
    }

    /// @notice Pays everything collected to the beneficiary, at most every thirty days.
    function payOut() external {
        require(msg.sender == beneficiary, "not beneficiary");
        require(block.timestamp >= lastPayoutAt + 30 days, "too early");
        lastPayoutAt = block.timestamp;
        uint256 amount = address(this).balance;
        emit PaidOut(amount);
        (bool sent, ) = beneficiary.call{value: amount}("");
        require(sent, "transfer failed");
    }
}
