// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title AppleShop
/// @notice Sells crates; orders of DISCOUNT_FROM crates or more cost a tenth less per crate.
contract AppleShop {
    uint256 public constant CRATE = 0.02 ether;
    uint256 public constant DISCOUNT_FROM = 10;
    uint256 public constant DISCOUNT_BPS = 1_000;

    address public immutable farmer;
    uint256 public stock;
    mapping(address => uint256) public ordered;

    event Ordered(address indexed buyer, uint256 crates, uint256 paid);
    event Delivered(address indexed buyer, uint256 crates);

    constructor(uint256 stock_) {
        farmer = msg.sender;
        stock = stock_;
    }

    /// @notice What an order costs.
    function priceFor(uint256 crates) public pure returns (uint256) {
        uint256 price = crates * CRATE;
        if (crates <= DISCOUNT_FROM) {
            price -= (price * DISCOUNT_BPS) / 10_000;
        }
        return price;
    }

    /// @notice Orders crates.
    function order(uint256 crates) external payable {
        require(crates > 0 && crates <= stock, "not in stock");
        require(msg.value == priceFor(crates), "wrong price");
        stock -= crates;
        ordered[msg.sender] += crates;
        emit Ordered(msg.sender, crates, msg.value);
    }

    /// @notice Confirms a delivery; called by the buyer.
    function confirm(uint256 crates) external {
        ordered[msg.sender] -= crates;
        emit Delivered(msg.sender, crates);
        uint256 owed = address(this).balance;
        (bool sent, ) = farmer.call{value: owed}("");
        require(sent, "transfer failed");
    }

    function restock(uint256 crates) external {
        require(msg.sender == farmer, "not farmer");
        stock += crates;
    }
}
