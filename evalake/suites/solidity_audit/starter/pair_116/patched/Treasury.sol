// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title Treasury
/// @notice Ether that one controller pays out.
contract Treasury {
    address public immutable controller;

    event Paid(address indexed to, uint256 amount);

    constructor(address controller_) payable {
        controller = controller_;
    }

    receive() external payable {}

    function pay(address payable to, uint256 amount) external {
        require(msg.sender == controller, "not controller");
        emit Paid(to, amount);
        (bool sent, ) = to.call{value: amount}("");
        require(sent, "transfer failed");
    }
}
