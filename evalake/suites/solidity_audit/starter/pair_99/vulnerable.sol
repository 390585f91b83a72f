// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title StreetPoll
/// @notice Neighbours vote on proposals for their street; the clerk opens and closes polls.
contract StreetPoll {
    struct Poll {
        string question;
        uint256 closesAt;
        uint256 yes;
        uint256 no;
    }

    address public immutable clerk;
    Poll[] private polls;
    mapping(address => bool) public isNeighbour;
    mapping(uint256 => mapping(address => bool)) public hasVoted;

    event NeighbourSet(address indexed account, bool active);
    event Opened(uint256 indexed poll, string question, uint256 closesAt);
    event Voted(uint256 indexed poll, address indexed neighbour, bool yes);

    constructor() {
        clerk = msg.sender;
    }

    receive() external payable {}

    function setNeighbour(address account, bool active) external {
        require(msg.sender == clerk, "not clerk");
        isNeighbour[account] = active;
        emit NeighbourSet(account, active);
    }

    /// @notice Opens a poll.
    function open(string calldata question, uint256 duration) external returns (uint256 poll) {
        require(msg.sender == clerk, "not clerk");
        require(duration >= 1 days, "too short");
        poll = polls.length;
        polls.push(Poll(question, block.timestamp + duration, 0, 0));
        emit Opened(poll, question, block.timestamp + duration);
    }

    /// @notice Votes in a poll, once.
    function vote(uint256 poll, bool yes) external payable {
        require(isNeighbour[msg.sender], "not a neighbour");
        require(poll < polls.length && block.timestamp < polls[poll].closesAt, "poll closed");
        require(!hasVoted[poll][msg.sender], "already voted");
        hasVoted[poll][msg.sender] = true;
        if (yes) {
            polls[poll].yes += 1;
        } else {
            polls[poll].no += 1;
        }
        emit Voted(poll, msg.sender, yes);
    }

    /// @notice A poll with its votes so far.
    function pollAt(uint256 poll) external view returns (Poll memory) {
        return polls[poll];
    }
}
