// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title StakePool
/// @notice Pools ether against transferable shares; an exit fee stays in the pool for the remaining holders.
contract StakePool {
    uint256 public constant EXIT_FEE_BPS = 50;

    uint256 public totalShares;
    uint256 public pooledEther;
    bool private entered;

    mapping(address => uint256) public sharesOf;
    mapping(address => mapping(address => uint256)) public allowance;

    event Deposited(address indexed account, uint256 amount, uint256 shares);
    event Redeemed(address indexed account, uint256 amount, uint256 shares);
    event SharesMoved(address indexed from, address indexed to, uint256 shares);

    modifier nonReentrant() {
        require(!entered, "entered");
        entered = true;
        _;
        entered = false;
    }

    /// @dev The first shares belong to nobody, so that the supply never gets near zero.
    constructor() payable {
        require(msg.value >= 0.1 ether, "seed too small");
        totalShares = msg.value;
        pooledEther = msg.value;
        sharesOf[address(0)] = msg.value;
    }

    /// @notice Wei per share, scaled by 1e18.
    function sharePrice() public view returns (uint256) {
        return (pooledEther * 1e18) / totalShares;
    }

    function deposit() external payable nonReentrant {
        uint256 shares = (msg.value * totalShares) / pooledEther;
        require(shares > 0, "deposit too small");
        totalShares += shares;
        pooledEther += msg.value;
        sharesOf[msg.sender] += shares;
        emit Deposited(msg.sender, msg.value, shares);
    }

    /// @notice Burns shares of the caller and pays their value less the exit fee.
    function redeem(uint256 shares) external nonReentrant {
        uint256 value = (shares * pooledEther) / totalShares;
        uint256 amount = value - (value * EXIT_FEE_BPS) / 10_000;
        require(amount > 0, "redemption too small");
        sharesOf[msg.sender] -= shares;
        totalShares -= shares;
        emit Redeemed(msg.sender, amount, shares);
        (bool sent, ) = msg.sender.call{value: amount}("");
        require(sent, "transfer failed");
        pooledEther -= amount;
    }

    function approve(address spender, uint256 shares) external {
        allowance[msg.sender][spender] = shares;
    }

    function transfer(address to, uint256 shares) external {
        _move(msg.sender, to, shares);
    }

    function transferFrom(address from, address to, uint256 shares) external {
        allowance[from][msg.sender] -= shares;
        _move(from, to, shares);
    }

    function _move(address from, address to, uint256 shares) private {
        sharesOf[from] -= shares;
        sharesOf[to] += shares;
        emit SharesMoved(from, to, shares);
    }
}

/// @title ShareLoanDesk
/// @notice Lends ether against shares of the pool, up to half of their value.
contract ShareLoanDesk {
    uint256 public constant LOAN_BPS = 5_000;
    uint256 public constant SEIZE_BPS = 9_000;

    StakePool public immutable pool;
    address public immutable funder;
    bool private entered;

    mapping(address => uint256) public pledged;
    mapping(address => uint256) public owed;

    event Borrowed(address indexed account, uint256 amount);
    event Repaid(address indexed account, uint256 amount);

    modifier nonReentrant() {
        require(!entered, "entered");
        entered = true;
        _;
        entered = false;
    }

    constructor(StakePool pool_) payable {
        pool = pool_;
        funder = msg.sender;
    }

    function pledge(uint256 shares) external nonReentrant {
        pledged[msg.sender] += shares;
        pool.transferFrom(msg.sender, address(this), shares);
    }

    function release(uint256 shares) external nonReentrant {
        pledged[msg.sender] -= shares;
        require(covered(msg.sender, LOAN_BPS), "debt not covered");
        pool.transfer(msg.sender, shares);
    }

    function borrow(uint256 amount) external nonReentrant {
        owed[msg.sender] += amount;
        require(covered(msg.sender, LOAN_BPS), "debt not covered");
        emit Borrowed(msg.sender, amount);
        (bool sent, ) = msg.sender.call{value: amount}("");
        require(sent, "transfer failed");
    }

    function repay() external payable nonReentrant {
        owed[msg.sender] -= msg.value;
        emit Repaid(msg.sender, msg.value);
    }

    /// @notice Gives the funder the shares of an account whose debt is no longer covered.
    function seize(address account) external nonReentrant {
        require(!covered(account, SEIZE_BPS), "debt is covered");
        uint256 shares = pledged[account];
        pledged[account] = 0;
        owed[account] = 0;
        pool.transfer(funder, shares);
    }

    /// @notice Pays idle ether to the funder.
    function withdrawIdle(uint256 amount) external nonReentrant {
        require(msg.sender == funder, "not funder");
        (bool sent, ) = funder.call{value: amount}("");
        require(sent, "transfer failed");
    }

    /// @notice Whether an account's debt is within a share of its collateral's value.
    function covered(address account, uint256 limitBps) public view returns (bool) {
        uint256 value = (pledged[account] * pool.sharePrice()) / 1e18;
        return owed[account] * 10_000 <= value * limitBps;
    }
}
