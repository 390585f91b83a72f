// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IBorrower {
    /// @notice Receives the loan; must return it with the fee before it ends.
    function onLoan(uint256 amount, uint256 fee) external payable;
}

/// @title DockLender
/// @notice Depositors of ether earn the fees of loans that last one call.
contract DockLender {
    uint256 public constant FEE_BPS = 5;

    uint256 public totalDeposits;
    uint256 public feesEarned;
    bool private lending;
    mapping(address => uint256) public depositOf;

    event Deposited(address indexed account, uint256 amount);
    event Withdrawn(address indexed account, uint256 amount);
    event Lent(address indexed borrower, uint256 amount, uint256 fee);

    modifier whenIdle() {
        require(!lending, "loan running");
        _;
    }

    receive() external payable {}

    function deposit() external payable whenIdle {
        depositOf[msg.sender] += msg.value;
        totalDeposits += msg.value;
        emit Deposited(msg.sender, msg.value);
    }

    function withdraw(uint256 amount) external whenIdle {
        depositOf[msg.sender] -= amount;
        totalDeposits -= amount;
        emit Withdrawn(msg.sender, amount);
        (bool sent, ) = msg.sender.call{value: amount}("");
        require(sent, "transfer failed");
    }

    /// @notice Lends ether to the calling contract within this call.
    function flashLoan(uint256 amount) external whenIdle {
        uint256 before = address(this).balance;
        require(amount <= before, "not that much here");
        uint256 fee = (amount * FEE_BPS) / 10_000;
        lending = true;
        emit Lent(msg.sender, amount, fee);
        IBorrower(msg.sender).onLoan{value: amount}(amount, fee);
        require(address(this).balance >= before + fee, "not returned");
        lending = false;
        feesEarned += fee;
    }

    /// @notice Sends the fees to the depositors' reserve.
    function creditFees(address reserve) external whenIdle {
        uint256 fees = feesEarned;
        feesEarned = 0;
        depositOf[reserve] += fees;
        totalDeposits += fees;
    }
}
