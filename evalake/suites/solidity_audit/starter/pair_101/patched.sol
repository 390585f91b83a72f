// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title TownCards
/// @notice Prepaid cards in cents. The town charges half a percent of each transfer between cards.
contract TownCards {
    uint256 public constant FEE_BPS = 50;
    uint256 public constant WEI_PER_CENT = 1e13;

    address public immutable town;
    mapping(address => uint256) public centsOf;
    uint256 public feeCents;

    event Loaded(address indexed card, uint256 cents);
    event Moved(address indexed from, address indexed to, uint256 cents, uint256 fee);
    event Unloaded(address indexed card, uint256 cents);

    constructor() {
        town = msg.sender;
    }

    /// @notice Loads the caller's card.
    function load() external payable {
        uint256 cents = msg.value / WEI_PER_CENT;
        require(cents > 0 && cents * WEI_PER_CENT == msg.value, "whole cents only");
        centsOf[msg.sender] += cents;
        emit Loaded(msg.sender, cents);
    }

    /// @notice The fee of a transfer.
    function feeOf(uint256 cents) public pure returns (uint256) {
        return (cents * FEE_BPS + 9_999) / 10_000;
    }

    /// @notice Moves cents to another card; the fee comes on top.
    function move(address to, uint256 cents) external {
        require(to != address(0) && cents > 0, "bad transfer");
        uint256 fee = feeOf(cents);
        centsOf[msg.sender] -= cents + fee;
        centsOf[to] += cents;
        feeCents += fee;
        emit Moved(msg.sender, to, cents, fee);
    }

    /// @notice Pays cents of the caller's card out.
    function unload(uint256 cents) external {
        centsOf[msg.sender] -= cents;
        emit Unloaded(msg.sender, cents);
        _pay(msg.sender, cents);
    }

    function collectFees() external {
        require(msg.sender == town, "not town");
        uint256 cents = feeCents;
        feeCents = 0;
        _pay(town, cents);
    }

    function _pay(address to, uint256 cents) private {
        (bool sent, ) = to.call{value: cents * WEI_PER_CENT}("");
        require(sent, "transfer failed");
    }
}
