// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

interface IPriceFeed {
    /// @return price Cash per collateral token, scaled by 1e18.
    /// @return updatedAt Time of the last report.
    function latestPrice() external view returns (uint256 price, uint256 updatedAt);
}

/// @title LendingDesk
/// @notice Lends a cash token against a collateral token. Both have 18 decimals, take no transfer fee and
///         return true on success.
contract LendingDesk {
    uint256 public constant MAX_LOAN_BPS = 6_000;
    uint256 public constant LIQUIDATION_BPS = 8_000;
    uint256 public constant LIQUIDATION_BONUS_BPS = 10_500;
    uint256 private constant BPS = 10_000;
    uint256 private constant MAX_PRICE_AGE = 1 hours;

    IERC20 public immutable cash;
    IERC20 public immutable collateral;
    IPriceFeed public immutable feed;
    address public immutable lender;

    mapping(address => uint256) public collateralOf;
    mapping(address => uint256) public debtOf;

    event Borrowed(address indexed account, uint256 amount);
    event Repaid(address indexed account, uint256 amount);
    event Liquidated(address indexed account, address indexed liquidator, uint256 seized);

    constructor(IERC20 cash_, IERC20 collateral_, IPriceFeed feed_) {
        cash = cash_;
        collateral = collateral_;
        feed = feed_;
        lender = msg.sender;
    }

    /// @notice Cash per collateral token, scaled by 1e18.
    function collateralPrice() public view returns (uint256) {
        (uint256 price, uint256 updatedAt) = feed.latestPrice();
        require(price > 0 && block.timestamp <= updatedAt + MAX_PRICE_AGE, "no current price");
        return price;
    }

    /// @notice Value of an account's collateral in cash.
    function collateralValue(address account) public view returns (uint256) {
        return (collateralOf[account] * collateralPrice()) / 1e18;
    }

    function addCollateral(uint256 amount) external {
        collateralOf[msg.sender] += amount;
        require(collateral.transferFrom(msg.sender, address(this), amount), "transfer failed");
    }

    function removeCollateral(uint256 amount) external {
        collateralOf[msg.sender] -= amount;
        require(_withinLimit(msg.sender, MAX_LOAN_BPS), "loan too large");
        require(collateral.transfer(msg.sender, amount), "transfer failed");
    }

    /// @notice Borrows cash up to the loan limit of the caller's collateral.
    function borrow(uint256 amount) external {
        debtOf[msg.sender] += amount;
        require(_withinLimit(msg.sender, MAX_LOAN_BPS), "loan too large");
        emit Borrowed(msg.sender, amount);
        require(cash.transfer(msg.sender, amount), "transfer failed");
    }

    function repay(uint256 amount) external {
        debtOf[msg.sender] -= amount;
        emit Repaid(msg.sender, amount);
        require(cash.transferFrom(msg.sender, address(this), amount), "transfer failed");
    }

    /// @notice Repays the whole debt of an account past the liquidation limit and takes collateral plus a bonus.
    function liquidate(address account) external {
        require(!_withinLimit(account, LIQUIDATION_BPS), "account is healthy");
        uint256 debt = debtOf[account];
        uint256 seized = (debt * LIQUIDATION_BONUS_BPS * 1e18) / (BPS * collateralPrice());
        if (seized > collateralOf[account]) {
            seized = collateralOf[account];
        }
        debtOf[account] = 0;
        collateralOf[account] -= seized;
        emit Liquidated(account, msg.sender, seized);
        require(cash.transferFrom(msg.sender, address(this), debt), "transfer failed");
        require(collateral.transfer(msg.sender, seized), "transfer failed");
    }

    /// @notice Lets the lender take idle cash back.
    function withdrawCash(uint256 amount) external {
        require(msg.sender == lender, "not lender");
        require(cash.transfer(lender, amount), "transfer failed");
    }

    function _withinLimit(address account, uint256 limitBps) private view returns (bool) {
        uint256 debt = debtOf[account];
        return debt == 0 || debt * BPS <= collateralValue(account) * limitBps;
    }
}
