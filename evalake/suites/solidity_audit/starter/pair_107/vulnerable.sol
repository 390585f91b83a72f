// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
    function balanceOf(address account) external view returns (uint256);
}

/// @title BarterPool
/// @notice Pool of two tokens with the constant product rule and a fee of three tenths of a percent.
contract BarterPool {
    IERC20 public immutable tokenA;
    IERC20 public immutable tokenB;
    uint256 public reserveA;
    uint256 public reserveB;
    uint256 public totalLiquidity;
    mapping(address => uint256) public liquidityOf;

    event Added(address indexed provider, uint256 amountA, uint256 amountB, uint256 liquidity);
    event Removed(address indexed provider, uint256 liquidity);
    event Swapped(address indexed trader, bool aForB, uint256 amountIn, uint256 amountOut);

    constructor(IERC20 tokenA_, IERC20 tokenB_) {
        tokenA = tokenA_;
        tokenB = tokenB_;
    }

    /// @notice Adds both tokens.
    function addLiquidity(uint256 amountA, uint256 amountB, uint256) external returns (uint256 liquidity) {
        if (totalLiquidity == 0) {
            liquidity = amountA;
        } else {
            uint256 byA = (amountA * totalLiquidity) / reserveA;
            uint256 byB = (amountB * totalLiquidity) / reserveB;
            liquidity = byA < byB ? byA : byB;
        }
        require(liquidity > 0, "too little");
        totalLiquidity += liquidity;
        liquidityOf[msg.sender] += liquidity;
        reserveA += amountA;
        reserveB += amountB;
        emit Added(msg.sender, amountA, amountB, liquidity);
        require(tokenA.transferFrom(msg.sender, address(this), amountA), "transfer failed");
        require(tokenB.transferFrom(msg.sender, address(this), amountB), "transfer failed");
    }

    function removeLiquidity(uint256 liquidity, uint256 leastA, uint256 leastB) external {
        uint256 amountA = (liquidity * reserveA) / totalLiquidity;
        uint256 amountB = (liquidity * reserveB) / totalLiquidity;
        require(amountA >= leastA && amountB >= leastB, "too little");
        liquidityOf[msg.sender] -= liquidity;
        totalLiquidity -= liquidity;
        reserveA -= amountA;
        reserveB -= amountB;
        emit Removed(msg.sender, liquidity);
        require(tokenA.transfer(msg.sender, amountA), "transfer failed");
        require(tokenB.transfer(msg.sender, amountB), "transfer failed");
    }

    /// @notice Swaps A for B.
    function swap(uint256 amountIn, uint256 leastOut) external returns (uint256 amountOut) {
        uint256 counted = amountIn * 997;
        amountOut = (counted * reserveB) / (reserveA * 1_000 + counted);
        require(amountOut >= leastOut && amountOut > 0, "too little");
        reserveA += amountIn;
        reserveB -= amountOut;
        emit Swapped(msg.sender, true, amountIn, amountOut);
        require(tokenA.transferFrom(msg.sender, address(this), amountIn), "transfer failed");
        require(tokenB.transfer(msg.sender, amountOut), "transfer failed");
    }
}
