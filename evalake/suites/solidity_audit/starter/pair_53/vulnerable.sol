// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title LocalPaper
/// @notice Monthly subscription in ether; a tenth of the fee goes to the reader who brought the subscriber.
contract LocalPaper {
    uint256 public constant MONTHLY_FEE = 0.01 ether;
    uint256 public constant REFERRAL_BPS = 1_000;

    address public immutable publisher;
    uint256 public revenue;
    mapping(address => uint256) public paidUntil;
    mapping(address => uint256) public bonus;

    event Subscribed(address indexed reader, uint256 paidUntil);
    event BonusCredited(address indexed referrer, address indexed reader, uint256 amount);

    constructor() {
        publisher = msg.sender;
    }

    /// @notice Subscribes for some months.
    /// @param referrer Reader who recommended the paper, or zero.
    function subscribe(uint256 months, address referrer) external payable {
        require(months > 0 && months <= 24, "bad term");
        require(msg.value == months * MONTHLY_FEE, "wrong fee");
        uint256 share = 0;
        if (referrer != address(0)) {
            share = (msg.value * REFERRAL_BPS) / 10_000;
            bonus[referrer] += share;
            emit BonusCredited(referrer, msg.sender, share);
        }
        revenue += msg.value - share;
        uint256 start = paidUntil[msg.sender] > block.timestamp ? paidUntil[msg.sender] : block.timestamp;
        paidUntil[msg.sender] = start + months * 30 days;
        emit Subscribed(msg.sender, paidUntil[msg.sender]);
    }

    function takeBonus() external {
        uint256 amount = bonus[msg.sender];
        require(amount > 0, "no bonus");
        bonus[msg.sender] = 0;
        (bool sent, ) = msg.sender.call{value: amount}("");
        require(sent, "transfer failed");
    }

    function collect() external {
        uint256 amount = revenue;
        revenue = 0;
        (bool sent, ) = publisher.call{value: amount}("");
        require(sent, "transfer failed");
    }
}
