// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title FleaMarket
/// @notice Sellers list articles at a price, buyers pay in ether. The warden can pause buying.
contract FleaMarket {
    struct Article {
        address payable seller;
        uint256 price;
        bool sold;
    }

    address public immutable warden;
    bool public paused;
    Article[] public articles;

    event Listed(uint256 indexed id, address indexed seller, uint256 price);
    event Sold(uint256 indexed id, address indexed buyer);
    event PausedSet(bool paused);

    modifier onlyWarden() {
        require(msg.sender == warden, "not warden");
        _;
    }

    constructor() {
        warden = msg.sender;
    }

    /// @notice Offers an article.
    function list(uint256 price) external returns (uint256 id) {
        require(price > 0, "no price");
        id = articles.length;
        articles.push(Article(payable(msg.sender), price, false));
        emit Listed(id, msg.sender, price);
    }

    /// @notice Buys an article; the seller is paid at once.
    function buy(uint256 id) external payable {
        require(!paused, "market paused");
        Article storage article = articles[id];
        require(!article.sold, "already sold");
        require(msg.value == article.price, "wrong price");
        article.sold = true;
        emit Sold(id, msg.sender);
        (bool sent, ) = article.seller.call{value: msg.value}("");
        require(sent, "transfer failed");
    }

    /// @notice Takes an article off the market.
    function takeBack(uint256 id) external {
        Article storage article = articles[id];
        require(msg.sender == article.seller && !article.sold, "not yours or sold");
        article.sold = true;
    }

    /// @notice Stops or resumes buying.
    function setPaused(bool paused_) external {
        paused = paused_;
        emit PausedSet(paused_);
    }
}
