// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title ChessLadder
/// @notice Points of a club's season. Wins are worth up to 1,000 points by the strength of the opponent.
contract ChessLadder {
    struct Player {
        bool active;
        uint32 points;
        uint16 games;
        uint40 lastGameAt;
    }

    uint32 public constant MOST_POINTS = 1_000;

    address public immutable arbiter;
    mapping(address => Player) public players;
    address public leader;
    uint256 public season = 1;

    event Entered(address indexed player);
    event Points(address indexed player, uint32 added, uint32 total);
    event NewLeader(address indexed player);

    modifier onlyArbiter() {
        require(msg.sender == arbiter, "not arbiter");
        _;
    }

    constructor() {
        arbiter = msg.sender;
    }

    function enter() external {
        require(!players[msg.sender].active, "already entered");
        players[msg.sender].active = true;
        emit Entered(msg.sender);
    }

    /// @notice Adds the points of a won game.
    function addPoints(address winner, uint32 points) external onlyArbiter {
        Player storage player = players[winner];
        require(player.active, "not entered");
        require(points > 0 && points <= MOST_POINTS, "bad points");
        uint32 sum = player.points + points;
        player.points = uint16(sum);
        player.games += 1;
        player.lastGameAt = uint40(block.timestamp);
        emit Points(winner, points, player.points);
        if (leader == address(0) || player.points > players[leader].points) {
            leader = winner;
            emit NewLeader(winner);
        }
    }

    /// @notice Points of an account in this season.
    function pointsOf(address account) external view returns (uint32) {
        return players[account].points;
    }
}
