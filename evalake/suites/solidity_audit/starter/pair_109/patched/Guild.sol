// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title Guild
/// @notice Members join with a deposit, which they get back when they leave.
contract Guild {
    uint256 public constant DEPOSIT = 1 ether;

    address public immutable founder;
    uint256 public memberCount;
    mapping(address => bool) public isMember;
    mapping(address => bool) public invited;
    bool private busy;

    event Invited(address indexed account);
    event Joined(address indexed account);
    event Left(address indexed account);

    modifier oneAtATime() {
        require(!busy, "busy");
        busy = true;
        _;
        busy = false;
    }

    constructor() payable {
        require(msg.value == DEPOSIT, "deposit missing");
        founder = msg.sender;
        isMember[msg.sender] = true;
        memberCount = 1;
    }

    function invite(address account) external {
        require(isMember[msg.sender], "not a member");
        invited[account] = true;
        emit Invited(account);
    }

    function join() external payable oneAtATime {
        require(invited[msg.sender] && !isMember[msg.sender], "not invited");
        require(msg.value == DEPOSIT, "deposit missing");
        isMember[msg.sender] = true;
        memberCount += 1;
        emit Joined(msg.sender);
    }

    /// @notice Leaves the guild with the deposit.
    function leave() external oneAtATime {
        require(isMember[msg.sender] && memberCount > 1, "cannot leave");
        memberCount -= 1;
        delete isMember[msg.sender];
        delete invited[msg.sender];
        (bool sent, ) = msg.sender.call{value: DEPOSIT}("");
        require(sent, "transfer failed");
        emit Left(msg.sender);
    }
}
