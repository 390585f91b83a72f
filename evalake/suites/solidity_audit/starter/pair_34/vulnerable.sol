// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

interface IAggregator {
    function decimals() external view returns (uint8);
    function latestRoundData()
        external
        view
        returns (uint80 roundId, int256 answer, uint256 startedAt, uint256 updatedAt, uint80 answeredInRound);
}

/// @title ExchangeKiosk
/// @notice Buys and sells a token for ether at a feed's price, with a margin of one percent.
/// @dev The token has 18 decimals, takes no transfer fee and returns true on success.
contract ExchangeKiosk {
    uint256 public constant MARGIN_BPS = 100;
    uint256 private constant BPS = 10_000;

    IERC20 public immutable token;
    IAggregator public immutable feed;
    address public immutable keeper;
    uint256 private immutable priceScale;
    bool public open;

    event Bought(address indexed customer, uint256 tokens, uint256 paid);
    event Sold(address indexed customer, uint256 tokens, uint256 received);
    event OpenChanged(bool open);

    modifier whenOpen() {
        require(open, "kiosk closed");
        _;
    }

    modifier onlyKeeper() {
        require(msg.sender == keeper, "not keeper");
        _;
    }

    constructor(IERC20 token_, IAggregator feed_) payable {
        token = token_;
        feed = feed_;
        keeper = msg.sender;
        priceScale = 10 ** uint256(feed_.decimals());
    }

    /// @notice Ether per token in the feed's decimals.
    function tokenPrice() public view returns (uint256) {
        (, int256 answer, , , ) = feed.latestRoundData();
        return uint256(answer);
    }

    /// @notice Buys tokens for the ether sent.
    /// @param minTokens Fewest tokens that the caller accepts.
    function buy(uint256 minTokens) external payable whenOpen {
        uint256 net = (msg.value * (BPS - MARGIN_BPS)) / BPS;
        uint256 tokens = (net * priceScale) / tokenPrice();
        require(tokens >= minTokens && tokens > 0, "too few tokens");
        emit Bought(msg.sender, tokens, msg.value);
        require(token.transfer(msg.sender, tokens), "transfer failed");
    }

    /// @notice Sells tokens of the caller for ether.
    /// @param minEther Least ether that the caller accepts, in wei.
    function sell(uint256 tokens, uint256 minEther) external whenOpen {
        uint256 gross = (tokens * tokenPrice()) / priceScale;
        uint256 amount = (gross * (BPS - MARGIN_BPS)) / BPS;
        require(amount >= minEther && amount > 0, "too little ether");
        emit Sold(msg.sender, tokens, amount);
        require(token.transferFrom(msg.sender, address(this), tokens), "transfer failed");
        (bool sent, ) = msg.sender.call{value: amount}("");
        require(sent, "transfer failed");
    }

    /// @notice Adds ether for customers who sell.
    function addEther() external payable {}

    function setOpen(bool open_) external onlyKeeper {
        open = open_;
        emit OpenChanged(open_);
    }

    /// @notice Takes ether and tokens out of the kiosk.
    function takeOut(uint256 etherAmount, uint256 tokens) external onlyKeeper {
        if (tokens > 0) {
            require(token.transfer(keeper, tokens), "transfer failed");
        }
        if (etherAmount > 0) {
            (bool sent, ) = keeper.call{value: etherAmount}("");
            require(sent, "transfer failed");
        }
    }
}
