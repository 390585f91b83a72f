// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title HouseholdMultisig
/// @notice Ether wallet of several owners; a payment needs the approvals of `threshold` of them.
contract HouseholdMultisig {
    uint256 public immutable threshold;
    address[] public owners;
    mapping(address => bool) public isOwner;
    mapping(bytes32 => mapping(address => bool)) public approved;
    mapping(bytes32 => bool) public executed;

    event Approved(bytes32 indexed payment, address indexed owner);
    event Executed(bytes32 indexed payment, address indexed to, uint256 amount);

    constructor(address[] memory owners_, uint256 threshold_) payable {
        require(threshold_ > 1 && threshold_ <= owners_.length, "bad threshold");
        for (uint256 i = 0; i < owners_.length; i++) {
            require(owners_[i] != address(0) && !isOwner[owners_[i]], "bad owner");
            isOwner[owners_[i]] = true;
        }
        owners = owners_;
        threshold = threshold_;
    }

    receive() external payable {}

    /// @notice Identifies a payment; the salt tells equal payments apart.
    function paymentId(address to, uint256 amount, uint256 salt) public pure returns (bytes32) {
        return keccak256(abi.encode(to, amount, salt));
    }

    function approve(bytes32 payment) external {
        require(isOwner[msg.sender], "not owner");
        approved[payment][msg.sender] = true;
        emit Approved(payment, msg.sender);
    }

    /// @notice Makes a payment.
    /// @param approvers Owners who have approved it, in increasing order.
    function execute(address payable to, uint256 amount, uint256 salt, address[] calldata approvers) external {
        bytes32 payment = paymentId(to, amount, salt);
        require(!executed[payment], "already executed");
        require(approvers.length >= threshold, "too few approvers");
        address last = address(0);
        for (uint256 i = 0; i < approvers.length; i++) {
            require(approvers[i] > last, "not in order");
            last = approvers[i];
            require(isOwner[last] && approved[payment][last], "not approved");
        }
        executed[payment] = true;
        emit Executed(payment, to, amount);
        (bool sent, ) = to.call{value: amount}("");
        require(sent, "transfer failed");
    }
}
