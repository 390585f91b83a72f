// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import {Coin} from "./Coin.sol";

/// @title Pool
/// @notice Constant product pool of cash and grain, without fee, with shares.
contract Pool {
    Coin public immutable cash;
    Coin public immutable grain;
    uint256 public cashReserve;
    uint256 public grainReserve;
    uint256 public totalShares;
    mapping(address => uint256) public sharesOf;
    mapping(address => mapping(address => bool)) public mayMove;

    constructor(Coin cash_, Coin grain_) {
        cash = cash_;
        grain = grain_;
    }

    /// @notice Adds both coins in the pool's ratio; the first provider sets it.
    function add(uint256 cashAmount, uint256 maxGrain) external returns (uint256 shares) {
        uint256 grainAmount = totalShares == 0 ? maxGrain : (cashAmount * grainReserve) / cashReserve + 1;
        require(grainAmount <= maxGrain, "too much grain");
        shares = totalShares == 0 ? cashAmount : (cashAmount * totalShares) / cashReserve;
        totalShares += shares;
        sharesOf[msg.sender] += shares;
        cashReserve += cashAmount;
        grainReserve += grainAmount;
        cash.transferFrom(msg.sender, address(this), cashAmount);
        grain.transferFrom(msg.sender, address(this), grainAmount);
    }

    function swapCash(uint256 amount, uint256 least) external returns (uint256 out) {
        out = (amount * grainReserve) / (cashReserve + amount);
        require(out >= least, "too little");
        cashReserve += amount;
        grainReserve -= out;
        cash.transferFrom(msg.sender, address(this), amount);
        grain.transfer(msg.sender, out);
    }

    function swapGrain(uint256 amount, uint256 least) external returns (uint256 out) {
        out = (amount * cashReserve) / (grainReserve + amount);
        require(out >= least, "too little");
        grainReserve += amount;
        cashReserve -= out;
        grain.transferFrom(msg.sender, address(this), amount);
        cash.transfer(msg.sender, out);
    }

    function setMover(address mover, bool allowed) external {
        mayMove[msg.sender][mover] = allowed;
    }

    function move(address from, address to, uint256 shares) external {
        require(msg.sender == from || mayMove[from][msg.sender], "not allowed");
        sharesOf[from] -= shares;
        sharesOf[to] += shares;
    }
}
