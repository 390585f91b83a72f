// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title HarbourBank
/// @notice Deposits in ether; withdrawals are requested, and paid in order when the bank is liquid.
contract HarbourBank {
    struct Request {
        address account;
        uint256 amount;
    }

    mapping(address => uint256) public balanceOf;
    mapping(address => uint256) public unpaid;
    Request[] public queue;
    uint256 public head;

    event Deposited(address indexed account, uint256 amount);
    event Requested(address indexed account, uint256 amount, uint256 place);
    event Paid(address indexed account, uint256 amount);

    function deposit() external payable {
        balanceOf[msg.sender] += msg.value;
        emit Deposited(msg.sender, msg.value);
    }

    /// @notice Joins the queue.
    function requestWithdrawal(uint256 amount) external {
        require(amount > 0, "nothing requested");
        balanceOf[msg.sender] -= amount;
        queue.push(Request(msg.sender, amount));
        emit Requested(msg.sender, amount, queue.length - 1);
    }

    /// @notice Pays the request at the head of the queue.
    function payNext() external {
        require(head < queue.length, "queue empty");
        Request memory request = queue[head];
        require(address(this).balance >= request.amount, "not liquid");
        head += 1;
        emit Paid(request.account, request.amount);
        (bool sent, ) = request.account.call{value: request.amount, gas: 30_000}("");
        if (!sent) {
            unpaid[request.account] += request.amount;
        }
    }

    /// @notice Pays the caller what could not be delivered.
    function collectUnpaid(address payable to) external {
        uint256 amount = unpaid[msg.sender];
        require(amount > 0, "nothing unpaid");
        unpaid[msg.sender] = 0;
        (bool sent, ) = to.call{value: amount}("");
        require(sent, "transfer failed");
    }

    function waiting() external view returns (uint256) {
        return queue.length - head;
    }
}
