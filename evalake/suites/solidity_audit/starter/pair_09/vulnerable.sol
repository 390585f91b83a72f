// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title VillageRaffle
/// @notice Sells numbered tickets for a limited time; one ticket wins the whole pot.
contract VillageRaffle {
    uint256 public constant TICKET_PRICE = 0.01 ether;
    uint256 public constant MAX_TICKETS_PER_PURCHASE = 20;
    uint256 public constant MIN_TICKETS = 2;

    uint256 public immutable salesEndAt;
    address[] private ticketHolders;
    address public winner;
    bool public prizePaid;

    mapping(address => uint256) public ticketCount;

    event TicketsSold(address indexed buyer, uint256 count);
    event WinnerDrawn(address indexed winner, uint256 ticket);
    event PrizePaid(address indexed winner, uint256 amount);
    event TicketsReturned(address indexed buyer, uint256 count);

    constructor(uint256 salesPeriod) {
        salesEndAt = block.timestamp + salesPeriod;
    }

    /// @notice Buys tickets for the ether sent.
    function buyTickets(uint256 count) external payable {
        require(block.timestamp < salesEndAt, "sales closed");
        require(count > 0 && count <= MAX_TICKETS_PER_PURCHASE, "bad ticket count");
        require(msg.value == count * TICKET_PRICE, "wrong payment");
        for (uint256 i = 0; i < count; i++) {
            ticketHolders.push(msg.sender);
        }
        ticketCount[msg.sender] += count;
        emit TicketsSold(msg.sender, count);
    }

    /// @notice Draws the winning ticket once sales have closed.
    function drawWinner() external {
        require(block.timestamp >= salesEndAt, "sales open");
        require(winner == address(0), "already drawn");
        require(ticketHolders.length >= MIN_TICKETS, "too few tickets");
        uint256 seed = uint256(
            keccak256(abi.encodePacked(blockhash(block.number - 1), block.timestamp, ticketHolders.length))
        );
        uint256 ticket = seed % ticketHolders.length;
        winner = ticketHolders[ticket];
        emit WinnerDrawn(winner, ticket);
    }

    /// @notice Pays the pot to the winner.
    function claimPrize() external {
        require(msg.sender == winner, "not winner");
        require(!prizePaid, "already paid");
        prizePaid = true;
        uint256 amount = ticketHolders.length * TICKET_PRICE;
        emit PrizePaid(msg.sender, amount);
        (bool sent, ) = msg.sender.call{value: amount}("");
        require(sent, "transfer failed");
    }

    /// @notice Returns the price of the caller's tickets when too few were sold for a draw.
    function returnTickets() external {
        require(block.timestamp >= salesEndAt, "sales open");
        require(ticketHolders.length < MIN_TICKETS, "raffle takes place");
        uint256 count = ticketCount[msg.sender];
        require(count > 0, "no tickets");
        ticketCount[msg.sender] = 0;
        emit TicketsReturned(msg.sender, count);
        (bool sent, ) = msg.sender.call{value: count * TICKET_PRICE}("");
        require(sent, "transfer failed");
    }

    function ticketsSold() external view returns (uint256) {
        return ticketHolders.length;
    }
}
