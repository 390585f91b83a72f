// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title CoffeeClub
/// @notice Members prepay ether, the barista books their coffees, and who leaves gets the rest back.
contract CoffeeClub {
    uint256 public constant CUP_PRICE = 0.001 ether;

    address public immutable barista;
    uint256 public earned;
    mapping(address => uint256) public prepaid;
    mapping(address => uint256) public cups;

    event Joined(address indexed member, uint256 amount);
    event Served(address indexed member, uint256 cups);
    event Left(address indexed member, uint256 amount);

    constructor() {
        barista = msg.sender;
    }

    /// @notice Adds ether to the caller's prepaid balance.
    function join() external payable {
        require(msg.value >= CUP_PRICE, "below one cup");
        prepaid[msg.sender] += msg.value;
        emit Joined(msg.sender, msg.value);
    }

    /// @notice Books cups of a member.
    function serve(address member, uint256 count) external {
        require(msg.sender == barista, "not barista");
        uint256 cost = count * CUP_PRICE;
        prepaid[member] -= cost;
        cups[member] += count;
        earned += cost;
        emit Served(member, count);
    }

    /// @notice Returns what the caller has not drunk.
    function leave() external {
        uint256 rest = prepaid[msg.sender];
        require(rest > 0, "nothing prepaid");
        (bool sent, ) = msg.sender.call{value: rest}("");
        require(sent, "transfer failed");
        delete prepaid[msg.sender];
        emit Left(msg.sender, rest);
    }

    /// @notice Pays the barista for the cups served.
    function collect() external {
        require(msg.sender == barista, "not barista");
        uint256 amount = earned;
        earned = 0;
        (bool sent, ) = barista.call{value: amount}("");
        require(sent, "transfer failed");
    }
}
