// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import {Guild} from "./Guild.sol";

/// @title Council
/// @notice Treasury of a guild: payments need the approval of more than half of the members.
contract Council {
    struct Payment {
        address payable to;
        uint256 amount;
        uint256 approvals;
        bool executed;
    }

    Guild public immutable guild;
    Payment[] public payments;
    mapping(uint256 => mapping(address => bool)) public approvedBy;

    event Proposed(uint256 indexed id, address indexed to, uint256 amount);
    event Approved(uint256 indexed id, address indexed member);
    event Executed(uint256 indexed id);

    modifier onlyMember() {
        require(guild.isMember(msg.sender), "not a member");
        _;
    }

    constructor(Guild guild_) payable {
        guild = guild_;
    }

    receive() external payable {}

    /// @notice Approvals that a payment needs now.
    function quorum() public view returns (uint256) {
        return guild.memberCount() / 2 + 1;
    }

    function propose(address payable to, uint256 amount) external onlyMember returns (uint256 id) {
        id = payments.length;
        payments.push(Payment(to, amount, 0, false));
        emit Proposed(id, to, amount);
    }

    function approve(uint256 id) external onlyMember {
        require(!approvedBy[id][msg.sender], "already approved");
        approvedBy[id][msg.sender] = true;
        payments[id].approvals += 1;
        emit Approved(id, msg.sender);
    }

    /// @notice Makes a payment that enough members have approved.
    function execute(uint256 id) external onlyMember {
        Payment storage payment = payments[id];
        require(!payment.executed && payment.approvals >= quorum(), "not passed");
        payment.executed = true;
        emit Executed(id);
        (bool sent, ) = payment.to.call{value: payment.amount}("");
        require(sent, "transfer failed");
    }
}
