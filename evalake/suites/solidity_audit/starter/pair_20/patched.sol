// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

interface IPool {
    /// @notice Integral of the pool's price over time, in seconds; the price is cash per token, scaled by 1e18.
    function cumulativePrice() external view returns (uint256);
}

/// @title CreditLine
/// @notice Lends cash against a token at the token's time-weighted average price.
/// @dev Cash and token have 18 decimals, take no transfer fee and return true on success.
contract CreditLine {
    uint256 public constant LOAN_BPS = 5_000;
    uint256 public constant CLOSE_BPS = 7_500;
    uint256 public constant BONUS_BPS = 10_800;
    uint256 public constant MAX_PRICE_AGE = 4 hours;
    uint256 public constant MIN_WINDOW = 30 minutes;
    uint256 private constant BPS = 10_000;

    IERC20 public immutable cash;
    IERC20 public immutable token;
    IPool public immutable pool;
    address public immutable funder;

    uint256 public averagePrice;
    uint256 public lastCumulative;
    uint256 public lastRefreshAt;

    mapping(address => uint256) public pledged;
    mapping(address => uint256) public owed;

    event PriceRefreshed(uint256 price, uint256 window);
    event Borrowed(address indexed account, uint256 amount);
    event Repaid(address indexed account, uint256 amount);
    event Closed(address indexed account, address indexed by, uint256 seized);

    constructor(IERC20 cash_, IERC20 token_, IPool pool_) {
        cash = cash_;
        token = token_;
        pool = pool_;
        funder = msg.sender;
        lastCumulative = pool_.cumulativePrice();
        lastRefreshAt = block.timestamp;
    }

    /// @notice Sets the price to the average since the last refresh.
    function refreshPrice() external {
        uint256 window = block.timestamp - lastRefreshAt;
        require(window >= MIN_WINDOW, "window too short");
        uint256 cumulative = pool.cumulativePrice();
        averagePrice = (cumulative - lastCumulative) / window;
        lastCumulative = cumulative;
        lastRefreshAt = block.timestamp;
        emit PriceRefreshed(averagePrice, window);
    }

    /// @notice Current price; reverts when it has not been refreshed for too long.
    function price() public view returns (uint256) {
        require(averagePrice > 0 && block.timestamp <= lastRefreshAt + MAX_PRICE_AGE, "no current price");
        return averagePrice;
    }

    function pledge(uint256 amount) external {
        pledged[msg.sender] += amount;
        require(token.transferFrom(msg.sender, address(this), amount), "transfer failed");
    }

    function unpledge(uint256 amount) external {
        pledged[msg.sender] -= amount;
        require(_covered(msg.sender, LOAN_BPS), "debt not covered");
        require(token.transfer(msg.sender, amount), "transfer failed");
    }

    /// @notice Borrows cash against the caller's pledged tokens.
    function borrow(uint256 amount) external {
        owed[msg.sender] += amount;
        require(_covered(msg.sender, LOAN_BPS), "debt not covered");
        emit Borrowed(msg.sender, amount);
        require(cash.transfer(msg.sender, amount), "transfer failed");
    }

    function repay(uint256 amount) external {
        owed[msg.sender] -= amount;
        emit Repaid(msg.sender, amount);
        require(cash.transferFrom(msg.sender, address(this), amount), "transfer failed");
    }

    /// @notice Repays the debt of an account that is no longer covered and takes its tokens with a bonus.
    function closeLoan(address account) external {
        require(!_covered(account, CLOSE_BPS), "debt is covered");
        uint256 debt = owed[account];
        uint256 seized = (debt * BONUS_BPS * 1e18) / (BPS * price());
        if (seized > pledged[account]) {
            seized = pledged[account];
        }
        owed[account] = 0;
        pledged[account] -= seized;
        emit Closed(account, msg.sender, seized);
        require(cash.transferFrom(msg.sender, address(this), debt), "transfer failed");
        require(token.transfer(msg.sender, seized), "transfer failed");
    }

    /// @notice Lets the funder take idle cash back.
    function withdrawCash(uint256 amount) external {
        require(msg.sender == funder, "not funder");
        require(cash.transfer(funder, amount), "transfer failed");
    }

    function _covered(address account, uint256 limitBps) private view returns (bool) {
        uint256 debt = owed[account];
        return debt == 0 || debt * BPS * 1e18 <= pledged[account] * price() * limitBps;
    }
}
