// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title LibraryCard
/// @notice Yearly library cards in ether; who gives the card back is paid for the seconds that are left.
contract LibraryCard {
    struct Card {
        uint256 paid;
        uint256 expiresAt;
    }

    uint256 public constant TERM = 365 days;
    uint256 public constant PRICE = 0.1 ether;

    address public immutable library_;
    mapping(address => Card) public cards;
    uint256 public activeCards;

    event Issued(address indexed reader, uint256 expiresAt);
    event GivenBack(address indexed reader, uint256 refund);

    constructor() {
        library_ = msg.sender;
    }

    /// @notice Buys a card for a year.
    function buy() external payable {
        require(msg.value == PRICE, "wrong price");
        require(cards[msg.sender].expiresAt <= block.timestamp, "card valid");
        cards[msg.sender] = Card(msg.value, block.timestamp + TERM);
        activeCards += 1;
        emit Issued(msg.sender, block.timestamp + TERM);
    }

    /// @notice What is paid back for the rest of a reader's term.
    function refundFor(address reader) public view returns (uint256) {
        Card storage card = cards[reader];
        if (block.timestamp >= card.expiresAt) {
            return 0;
        }
        uint256 left = card.expiresAt - block.timestamp;
        return (left / TERM) * card.paid;
    }

    /// @notice Gives the caller's card back.
    function giveBack() external {
        require(cards[msg.sender].expiresAt > block.timestamp, "no valid card");
        uint256 refund = refundFor(msg.sender);
        delete cards[msg.sender];
        activeCards -= 1;
        emit GivenBack(msg.sender, refund);
        (bool sent, ) = msg.sender.call{value: refund}("");
        require(sent, "transfer failed");
    }

    /// @notice Pays the library what no valid card could claim.
    function collect() external {
        require(msg.sender == library_, "not library");
        uint256 held = activeCards * PRICE;
        require(address(this).balance > held, "nothing to collect");
        (bool sent, ) = library_.call{value: address(this).balance - held}("");
        require(sent, "transfer failed");
    }
}
