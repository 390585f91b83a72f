// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IDiceHouse {
    /// @notice Registers a throw; the house later calls thrown(id, number) on the caller.
    function order() external returns (uint256 id);
}

/// @title FairWheel
/// @notice A spin costs a token fee and one in five wins a small bonus out of the wheel's ether.
contract FairWheel {
    uint256 public constant FEE = 0.001 ether;
    uint256 public constant BONUS = 0.002 ether;
    uint256 public constant CHANCE = 5;

    IDiceHouse public immutable house;
    address public immutable owner;
    mapping(address => uint256) public spins;
    mapping(uint256 => address) public playerOf;
    mapping(address => uint256) public bonusOf;

    event Spun(address indexed player);
    event Won(address indexed player);

    constructor(IDiceHouse house_) payable {
        house = house_;
        owner = msg.sender;
    }

    /// @notice Spins the wheel.
    function spin() external payable {
        require(msg.value == FEE, "wrong fee");
        require(address(this).balance >= BONUS, "wheel empty");
        spins[msg.sender] += 1;
        emit Spun(msg.sender);
        playerOf[house.order()] = msg.sender;
    }

    /// @notice Told by the house what a throw has brought.
    function thrown(uint256 id, uint256 number) external {
        require(msg.sender == address(house), "not house");
        address player = playerOf[id];
        delete playerOf[id];
        if (player != address(0) && number % CHANCE == 0) {
            bonusOf[player] += BONUS;
            emit Won(player);
        }
    }

    function collect() external {
        uint256 amount = bonusOf[msg.sender];
        require(amount > 0, "no bonus");
        bonusOf[msg.sender] = 0;
        (bool sent, ) = msg.sender.call{value: amount}("");
        require(sent, "transfer failed");
    }
}
