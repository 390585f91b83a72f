// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title NeighbourLoans
/// @notice One pot of ether lent at a yearly rate that the committee sets; interest accrues on an index.
contract NeighbourLoans {
    uint256 private constant ONE = 1e18;
    uint256 public constant MAX_RATE_BPS = 2_000;

    address public immutable committee;
    uint256 public rateBps;
    uint256 public index = ONE;
    uint256 public accruedAt;
    mapping(address => uint256) public limitOf;
    mapping(address => uint256) private scaledDebt;

    event RateSet(uint256 rateBps);
    event Borrowed(address indexed account, uint256 amount);
    event Repaid(address indexed account, uint256 amount);

    constructor(uint256 rateBps_) payable {
        committee = msg.sender;
        rateBps = rateBps_;
        accruedAt = block.timestamp;
    }

    function setLimit(address account, uint256 limit) external {
        require(msg.sender == committee, "not committee");
        limitOf[account] = limit;
    }

    /// @notice Sets the rate from now on.
    function setRate(uint256 newRateBps) external {
        require(msg.sender == committee, "not committee");
        require(newRateBps <= MAX_RATE_BPS, "rate too high");
        rateBps = newRateBps;
        emit RateSet(newRateBps);
    }

    /// @notice Adds the interest since the last accrual to the index.
    function accrue() public {
        index += (index * rateBps * (block.timestamp - accruedAt)) / (10_000 * 365 days);
        accruedAt = block.timestamp;
    }

    function borrow(uint256 amount) external {
        accrue();
        scaledDebt[msg.sender] += (amount * ONE + index - 1) / index;
        require(debtOf(msg.sender) <= limitOf[msg.sender], "over limit");
        emit Borrowed(msg.sender, amount);
        (bool sent, ) = msg.sender.call{value: amount}("");
        require(sent, "transfer failed");
    }

    function repay() external payable {
        accrue();
        scaledDebt[msg.sender] -= (msg.value * ONE) / index;
        emit Repaid(msg.sender, msg.value);
    }

    /// @notice Debt of an account as of the last accrual.
    function debtOf(address account) public view returns (uint256) {
        return (scaledDebt[account] * index) / ONE;
    }
}
