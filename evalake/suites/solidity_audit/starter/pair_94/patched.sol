// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
    function balanceOf(address account) external view returns (uint256);
}

/// @title HarbourLocker
/// @notice Keeps tokens of any kind for their owners, with one account book a token.
contract HarbourLocker {
    mapping(IERC20 => mapping(address => uint256)) public held;
    mapping(IERC20 => uint256) public totalHeld;
    mapping(address => mapping(address => bool)) public mayCollect;

    event Deposited(address indexed token, address indexed account, uint256 amount);
    event Withdrawn(address indexed token, address indexed account, address to, uint256 amount);
    event CollectorSet(address indexed account, address indexed collector, bool allowed);

    /// @notice Locks tokens of the caller.
    function deposit(IERC20 token, uint256 amount) external returns (uint256 credited) {
        require(amount > 0, "nothing deposited");
        uint256 before = token.balanceOf(address(this));
        require(token.transferFrom(msg.sender, address(this), amount), "transfer failed");
        credited = token.balanceOf(address(this)) - before;
        held[token][msg.sender] += credited;
        totalHeld[token] += credited;
        emit Deposited(address(token), msg.sender, credited);
    }

    /// @notice Pays locked tokens of the caller to an address.
    function withdraw(IERC20 token, uint256 amount, address to) external {
        _withdraw(token, msg.sender, amount, to);
    }

    /// @notice Lets another account collect in the caller's name, to the caller.
    function setCollector(address collector, bool allowed) external {
        mayCollect[msg.sender][collector] = allowed;
        emit CollectorSet(msg.sender, collector, allowed);
    }

    function collectFor(IERC20 token, address account, uint256 amount) external {
        require(mayCollect[account][msg.sender], "not a collector");
        _withdraw(token, account, amount, account);
    }

    function _withdraw(IERC20 token, address account, uint256 amount, address to) private {
        require(to != address(0), "zero address");
        held[token][account] -= amount;
        totalHeld[token] -= amount;
        emit Withdrawn(address(token), account, to, amount);
        require(token.transfer(to, amount), "transfer failed");
    }
}
