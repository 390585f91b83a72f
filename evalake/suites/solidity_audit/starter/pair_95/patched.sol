// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title TreasureGuess
/// @notice A host hides a number; guesses cost a fee that goes to the pot. The host pays guesses out after the end.
contract TreasureGuess {
    uint256 public constant FEE = 0.01 ether;

    address public immutable host;
    uint256 public immutable endsAt;
    bytes32 private secret;
    uint256 public pot;
    mapping(address => uint256) public guessOf;
    mapping(address => bool) public paid;
    uint256 public revealed;

    event Guessed(address indexed player);
    event Won(address indexed player, uint256 amount);

    constructor(uint256 duration) payable {
        host = msg.sender;
        pot = msg.value;
        endsAt = block.timestamp + duration;
    }

    /// @notice Hides the number before the game.
    function hide(bytes32 value) external {
        require(msg.sender == host && secret == bytes32(0), "cannot hide");
        secret = value;
    }

    /// @notice Guesses the number; every account has one guess.
    function guess(uint256 number) external payable {
        require(block.timestamp < endsAt, "game over");
        require(msg.value == FEE && guessOf[msg.sender] == 0 && number != 0, "cannot guess");
        guessOf[msg.sender] = number;
        pot += msg.value;
        emit Guessed(msg.sender);
    }

    /// @notice Reveals the number after the end.
    function reveal(uint256 number, bytes32 salt) external {
        require(block.timestamp >= endsAt && revealed == 0, "cannot reveal");
        require(keccak256(abi.encode(number, salt)) == secret, "wrong number");
        revealed = number;
    }

    /// @notice Pays the pot to the first account with the right guess that asks.
    function claim() external {
        require(revealed != 0 && guessOf[msg.sender] == revealed, "not the number");
        uint256 amount = pot;
        require(amount > 0, "pot taken");
        pot = 0;
        emit Won(msg.sender, amount);
        (bool sent, ) = msg.sender.call{value: amount}("");
        require(sent, "transfer failed");
    }
}
