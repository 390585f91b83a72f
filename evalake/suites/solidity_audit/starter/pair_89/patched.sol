// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
    function balanceOf(address account) external view returns (uint256);
}

/// @title CellarFund
/// @notice Fund of one token with internal shares; managers' profits come in through addProfit.
contract CellarFund {
    IERC20 public immutable token;
    uint256 public totalShares;
    uint256 public booked;
    mapping(address => uint256) public sharesOf;
    mapping(address => mapping(address => bool)) public mayMove;

    constructor(IERC20 token_) {
        token = token_;
    }

    /// @notice Tokens behind all shares.
    function assets() public view returns (uint256) {
        return booked;
    }

    function deposit(uint256 amount) external returns (uint256 shares) {
        shares = totalShares == 0 ? amount : (amount * totalShares) / assets();
        require(shares > 0, "too little");
        totalShares += shares;
        sharesOf[msg.sender] += shares;
        booked += amount;
        require(token.transferFrom(msg.sender, address(this), amount), "transfer failed");
    }

    function redeem(uint256 shares) external returns (uint256 amount) {
        amount = (shares * assets()) / totalShares;
        sharesOf[msg.sender] -= shares;
        totalShares -= shares;
        booked -= amount > booked ? booked : amount;
        require(token.transfer(msg.sender, amount), "transfer failed");
    }

    function addProfit(uint256 amount) external {
        booked += amount;
        require(token.transferFrom(msg.sender, address(this), amount), "transfer failed");
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

/// @title ShareMarket
/// @notice Lends the fund's token against its shares, up to seventy percent of their value.
contract ShareMarket {
    uint256 public constant LOAN_BPS = 7_000;

    CellarFund public immutable fund;
    IERC20 public immutable token;
    mapping(address => uint256) public pledged;
    mapping(address => uint256) public debtOf;

    event Borrowed(address indexed account, uint256 amount);

    constructor(CellarFund fund_) {
        fund = fund_;
        token = fund_.token();
    }

    /// @notice Tokens that shares are worth now.
    function shareValue(uint256 shares) public view returns (uint256) {
        return (shares * fund.assets()) / fund.totalShares();
    }

    function pledge(uint256 shares) external {
        pledged[msg.sender] += shares;
        fund.move(msg.sender, address(this), shares);
    }

    function release(uint256 shares) external {
        pledged[msg.sender] -= shares;
        require(debtOf[msg.sender] * 10_000 <= shareValue(pledged[msg.sender]) * LOAN_BPS, "debt not covered");
        fund.move(address(this), msg.sender, shares);
    }

    function borrow(uint256 amount) external {
        debtOf[msg.sender] += amount;
        require(debtOf[msg.sender] * 10_000 <= shareValue(pledged[msg.sender]) * LOAN_BPS, "debt not covered");
        emit Borrowed(msg.sender, amount);
        require(token.transfer(msg.sender, amount), "transfer failed");
    }

    function repay(uint256 amount) external {
        debtOf[msg.sender] -= amount;
        require(token.transferFrom(msg.sender, address(this), amount), "transfer failed");
    }
}
