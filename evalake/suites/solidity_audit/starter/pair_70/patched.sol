// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title PuppetTheatre
/// @notice Sells tickets for shows, one for each account and show, and gives change.
contract PuppetTheatre {
    struct Show {
        uint256 startsAt;
        uint256 price;
        uint256 seatsLeft;
    }

    address public immutable director;
    Show[] public shows;
    mapping(uint256 => mapping(address => uint256)) public ticketsOf;

    event Planned(uint256 indexed show, uint256 startsAt, uint256 price);
    event Booked(uint256 indexed show, address indexed guest);

    constructor() {
        director = msg.sender;
    }

    function plan(uint256 startsAt, uint256 price, uint256 seats) external {
        require(msg.sender == director, "not director");
        require(startsAt > block.timestamp, "in the past");
        shows.push(Show(startsAt, price, seats));
        emit Planned(shows.length - 1, startsAt, price);
    }

    /// @notice Books one seat; what is paid too much comes back.
    function book(uint256 id) external payable {
        Show storage show = shows[id];
        require(block.timestamp < show.startsAt, "started");
        require(show.seatsLeft > 0, "sold out");
        require(ticketsOf[id][msg.sender] == 0, "one ticket each");
        require(msg.value >= show.price, "too little");
        show.seatsLeft -= 1;
        ticketsOf[id][msg.sender] += 1;
        _giveChange(msg.value - show.price);
        emit Booked(id, msg.sender);
    }

    /// @notice Pays the director the takings of all shows that have begun.
    function collect() external {
        require(msg.sender == director, "not director");
        for (uint256 i = 0; i < shows.length; i++) {
            require(block.timestamp >= shows[i].startsAt, "a show is to come");
        }
        (bool sent, ) = director.call{value: address(this).balance}("");
        require(sent, "transfer failed");
    }

    function _giveChange(uint256 amount) private {
        if (amount > 0) {
            (bool sent, ) = msg.sender.call{value: amount}("");
            require(sent, "transfer failed");
        }
    }
}
