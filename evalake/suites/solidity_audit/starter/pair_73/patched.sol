// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title BowlingLeague
/// @notice Results of a bowling league: the scorer enters them, players choose how they are called.
contract BowlingLeague {
    struct Player {
        bool exists;
        string nickname;
        uint256 games;
        uint256 points;
    }

    address public immutable scorer;
    address[] public roster;
    mapping(address => Player) private players;

    event Joined(address indexed player, string nickname);
    event Renamed(address indexed player, string nickname);
    event Scored(address indexed player, uint256 points);

    constructor() {
        scorer = msg.sender;
    }

    function join(string calldata nickname) external {
        require(!players[msg.sender].exists, "already in");
        require(bytes(nickname).length > 0 && bytes(nickname).length <= 32, "bad name");
        players[msg.sender] = Player(true, nickname, 0, 0);
        roster.push(msg.sender);
        emit Joined(msg.sender, nickname);
    }

    /// @notice Changes how a player is called.
    function setNickname(address player, string calldata nickname) external {
        require(player == msg.sender && players[player].exists, "not that player");
        require(bytes(nickname).length > 0 && bytes(nickname).length <= 32, "bad name");
        players[player].nickname = nickname;
        emit Renamed(player, nickname);
    }

    /// @notice Enters the points of a game.
    function score(address player, uint256 points) external {
        require(msg.sender == scorer, "not scorer");
        require(players[player].exists, "no such player");
        require(points <= 300, "impossible score");
        players[player].games += 1;
        players[player].points += points;
        emit Scored(player, points);
    }

    function playerAt(address account) external view returns (Player memory) {
        return players[account];
    }
}
