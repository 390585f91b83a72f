// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title LotAuction
/// @notice Ascending auction of one off-chain lot; the highest bid when time runs out wins.
contract LotAuction {
    uint256 public constant MIN_INCREMENT_BPS = 500;
    uint256 public constant EXTENSION = 10 minutes;

    address public immutable seller;
    uint256 public immutable reservePrice;
    uint256 public endsAt;
    address public leader;
    uint256 public leadingBid;
    bool public settled;

    event BidPlaced(address indexed bidder, uint256 amount, uint256 endsAt);
    event Settled(address indexed winner, uint256 amount);

    constructor(uint256 reservePrice_, uint256 duration) {
        require(duration >= 1 hours, "too short");
        require(reservePrice_ > 0, "no reserve price");
        seller = msg.sender;
        reservePrice = reservePrice_;
        endsAt = block.timestamp + duration;
    }

    /// @notice Smallest bid that is accepted now, in wei.
    function minimumBid() public view returns (uint256) {
        if (leader == address(0)) {
            return reservePrice;
        }
        return leadingBid + (leadingBid * MIN_INCREMENT_BPS) / 10_000 + 1;
    }

    /// @notice Places a bid with the ether sent. Late bids extend the auction.
    function bid() external payable {
        require(block.timestamp < endsAt, "auction over");
        require(msg.sender != seller, "seller cannot bid");
        require(msg.value >= minimumBid(), "bid too low");

        address formerLeader = leader;
        uint256 formerBid = leadingBid;
        leader = msg.sender;
        leadingBid = msg.value;
        if (endsAt - block.timestamp < EXTENSION) {
            endsAt = block.timestamp + EXTENSION;
        }
        emit BidPlaced(msg.sender, msg.value, endsAt);

        if (formerLeader != address(0)) {
            (bool returned, ) = formerLeader.call{value: formerBid}("");
            require(returned, "refund failed");
        }
    }

    /// @notice Pays the winning bid to the seller once the auction is over.
    function settle() external {
        require(block.timestamp >= endsAt, "auction running");
        require(!settled, "already settled");
        settled = true;
        emit Settled(leader, leadingBid);
        if (leadingBid > 0) {
            (bool sent, ) = seller.call{value: leadingBid}("");
            require(sent, "transfer failed");
        }
    }

    /// @notice Seconds until the auction ends; zero when it is over.
    function timeLeft() external view returns (uint256) {
        return block.timestamp >= endsAt ? 0 : endsAt - block.timestamp;
    }
}
