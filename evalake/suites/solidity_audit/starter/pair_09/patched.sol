// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IRandomnessCoordinator {
    /// @notice Asks for one verifiable random word, which it delivers in a later transaction to receiveRandomWord.
    function requestRandomWord() external returns (uint256 requestId);
}

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
    IRandomnessCoordinator public immutable coordinator;
    uint256 public requestId;
    bool public drawRequested;

    mapping(address => uint256) public ticketCount;

    event TicketsSold(address indexed buyer, uint256 count);
    event WinnerDrawn(address indexed winner, uint256 ticket);
    event PrizePaid(address indexed winner, uint256 amount);
    event TicketsReturned(address indexed buyer, uint256 count);

    constructor(uint256 salesPeriod, IRandomnessCoordinator coordinator_) {
        coordinator = coordinator_;
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

    /// @notice Requests the draw once sales have closed.
    function drawWinner() external {
        require(block.timestamp >= salesEndAt, "sales open");
        require(!drawRequested, "already drawn");
        require(ticketHolders.length >= MIN_TICKETS, "too few tickets");
        drawRequested = true;
        requestId = coordinator.requestRandomWord();
    }

    /// @notice Called by the coordinator with the random word.
    function receiveRandomWord(uint256 id, uint256 word) external {
        require(msg.sender == address(coordinator), "not coordinator");
        require(drawRequested && id == requestId && winner == address(0), "unknown request");
        uint256 ticket = word % ticketHolders.length;
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
