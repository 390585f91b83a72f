// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
    function balanceOf(address account) external view returns (uint256);
}

/// @title MarketRouter
/// @notice Takes approved tokens of a user, has a venue exchange them, and passes the proceeds on.
contract MarketRouter {
    address public immutable owner;
    mapping(address => bool) public isVenue;
    uint256 public swaps;

    event VenueSet(address indexed venue, bool listed);
    event Swapped(address indexed user, address indexed venue, uint256 spent, uint256 received);

    constructor() {
        owner = msg.sender;
    }

    function setVenue(address venue, bool listed) external {
        require(msg.sender == owner, "not owner");
        require(venue.code.length > 0, "no code");
        isVenue[venue] = listed;
        emit VenueSet(venue, listed);
    }

    /// @notice Exchanges tokens of the caller at a venue.
    /// @param data The call that makes the venue exchange tokens which it was sent.
    /// @param minReceived Least amount of `bought` that must come.
    function swap(IERC20 sold, uint256 amount, IERC20 bought, uint256 minReceived, address venue, bytes calldata data)
        external
        returns (uint256 received)
    {
        require(isVenue[venue], "not a venue");
        uint256 before = bought.balanceOf(address(this));
        if (amount > 0) {
            require(sold.transferFrom(msg.sender, venue, amount), "transfer failed");
        }
        (bool ok, ) = venue.call(data);
        require(ok, "venue failed");
        received = bought.balanceOf(address(this)) - before;
        require(received >= minReceived, "too little received");
        swaps += 1;
        emit Swapped(msg.sender, venue, amount, received);
        if (received > 0) {
            require(bought.transfer(msg.sender, received), "transfer failed");
        }
    }
}
