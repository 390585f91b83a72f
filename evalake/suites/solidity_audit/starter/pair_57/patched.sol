// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title StampAuction
/// @notice English auction in ether with bids that stay in the contract until they are withdrawn.
contract StampAuction {
    address public immutable seller;
    uint256 public immutable endsAt;
    address public leader;
    uint256 public leadingBid;
    bool public settled;
    mapping(address => uint256) public deposited;

    event BidPlaced(address indexed bidder, uint256 total);
    event BidWithdrawn(address indexed bidder, uint256 amount);
    event Settled(address indexed winner, uint256 price);

    constructor(uint256 duration) {
        seller = msg.sender;
        endsAt = block.timestamp + duration;
    }

    /// @notice Adds to the caller's bid, which has to be the highest then.
    function bid() external payable {
        require(block.timestamp < endsAt, "auction over");
        uint256 total = deposited[msg.sender] + msg.value;
        require(total > leadingBid, "bid too low");
        deposited[msg.sender] = total;
        leader = msg.sender;
        leadingBid = total;
        emit BidPlaced(msg.sender, total);
    }

    /// @notice Returns the caller's bid when it is not the leading one.
    function withdrawBid() external {
        require(msg.sender != leader, "leading bid");
        uint256 amount = deposited[msg.sender];
        require(amount > 0, "no bid");
        deposited[msg.sender] = 0;
        emit BidWithdrawn(msg.sender, amount);
        (bool sent, ) = msg.sender.call{value: amount}("");
        require(sent, "transfer failed");
    }

    /// @notice Pays the seller after the end.
    function settle() external {
        require(block.timestamp >= endsAt, "auction running");
        require(!settled && leader != address(0), "nothing to settle");
        settled = true;
        deposited[leader] = 0;
        emit Settled(leader, leadingBid);
        (bool sent, ) = seller.call{value: leadingBid}("");
        require(sent, "transfer failed");
    }
}
