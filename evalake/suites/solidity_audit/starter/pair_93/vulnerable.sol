// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
    function balanceOf(address account) external view returns (uint256);
}

/// @title PriceBoard
/// @notice One pool a token, traded against ether at a price that moves with each trade.
contract PriceBoard {
    struct Pool {
        uint256 price;
        uint256 tokens;
        uint256 etherHeld;
        bool exists;
    }

    uint256 public constant STEP_BPS = 10;
    mapping(IERC20 => Pool) public pools;
    mapping(IERC20 => mapping(address => uint256)) public providedTokens;

    event PoolCreated(address indexed token, uint256 price);
    event Provided(address indexed token, address indexed provider, uint256 tokens);
    event Bought(address indexed token, address indexed buyer, uint256 tokens, uint256 paid);

    /// @notice Creates the pool of a token, or joins it, with tokens of the caller.
    /// @param price Wei for 1e18 units at the start.
    function createPool(IERC20 token, uint256 price, uint256 tokens) external {
        require(price > 0 && tokens > 0, "bad terms");
        Pool storage pool = pools[token];
        if (!pool.exists) {
            pool.exists = true;
            pool.price = price;
            emit PoolCreated(address(token), price);
        }
        pool.tokens += tokens;
        providedTokens[token][msg.sender] += tokens;
        emit Provided(address(token), msg.sender, tokens);
        require(token.transferFrom(msg.sender, address(this), tokens), "transfer failed");
    }

    /// @notice Buys tokens at the pool's price, which rises a little with each purchase.
    function buy(IERC20 token, uint256 leastTokens) external payable {
        Pool storage pool = pools[token];
        require(pool.exists, "no pool");
        uint256 tokens = (msg.value * 1e18) / pool.price;
        require(tokens >= leastTokens && tokens > 0, "too few tokens");
        pool.tokens -= tokens;
        pool.etherHeld += msg.value;
        pool.price += (pool.price * STEP_BPS) / 10_000;
        emit Bought(address(token), msg.sender, tokens, msg.value);
        require(token.transfer(msg.sender, tokens), "transfer failed");
    }

    /// @notice Takes unsold tokens of the caller back.
    function takeBack(IERC20 token, uint256 tokens) external {
        providedTokens[token][msg.sender] -= tokens;
        pools[token].tokens -= tokens;
        require(token.transfer(msg.sender, tokens), "transfer failed");
    }
}
