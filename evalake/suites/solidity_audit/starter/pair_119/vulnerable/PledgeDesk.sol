// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import {ReporterPanel} from "./ReporterPanel.sol";

interface IToken {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

/// @title PledgeDesk
/// @notice Lends ether against a token at half of its price.
contract PledgeDesk {
    uint256 public constant LOAN_BPS = 5_000;

    IToken public immutable token;
    ReporterPanel public immutable panel;
    mapping(address => uint256) public pledged;
    mapping(address => uint256) public debtOf;

    event Pledged(address indexed account, uint256 amount);
    event Borrowed(address indexed account, uint256 amount);
    event Repaid(address indexed account, uint256 amount, bool covered);
    event Released(address indexed account, uint256 amount);

    constructor(IToken token_, ReporterPanel panel_) payable {
        token = token_;
        panel = panel_;
    }

    function pledge(uint256 amount) external {
        pledged[msg.sender] += amount;
        emit Pledged(msg.sender, amount);
        require(token.transferFrom(msg.sender, address(this), amount), "transfer failed");
    }

    function borrow(uint256 amount) external {
        debtOf[msg.sender] += amount;
        require(covered(msg.sender), "debt not covered");
        emit Borrowed(msg.sender, amount);
        (bool sent, ) = msg.sender.call{value: amount}("");
        require(sent, "transfer failed");
    }

    function repay() external payable {
        debtOf[msg.sender] -= msg.value;
        emit Repaid(msg.sender, msg.value, covered(msg.sender));
    }

    function release(uint256 amount) external {
        pledged[msg.sender] -= amount;
        require(covered(msg.sender), "debt not covered");
        emit Released(msg.sender, amount);
        require(token.transfer(msg.sender, amount), "transfer failed");
    }

    /// @notice Whether an account's pledge covers its debt.
    function covered(address account) public view returns (bool) {
        uint256 value = (pledged[account] * panel.median()) / 1e18;
        return debtOf[account] * 10_000 <= value * LOAN_BPS;
    }
}
