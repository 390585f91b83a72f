// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

/// @title TokenAccounts
/// @notice Accounts in several listed tokens, with payments between accounts that move no tokens.
/// @dev Listed tokens take no transfer fee, call no hooks and return a boolean from transfers.
contract TokenAccounts {
    address public curator;
    address public nextCurator;

    mapping(IERC20 => bool) public listed;
    mapping(IERC20 => mapping(address => uint256)) public balanceOf;
    mapping(IERC20 => uint256) public totalHeld;

    event TokenListed(address indexed token);
    event TokenDelisted(address indexed token);
    event Deposited(address indexed token, address indexed account, uint256 amount);
    event Withdrawn(address indexed token, address indexed account, uint256 amount);
    event Paid(address indexed token, address indexed from, address indexed to, uint256 amount);

    modifier onlyCurator() {
        require(msg.sender == curator, "not curator");
        _;
    }

    constructor() {
        curator = msg.sender;
    }

    function list(IERC20 token) external onlyCurator {
        require(address(token).code.length > 0, "not a contract");
        listed[token] = true;
        emit TokenListed(address(token));
    }

    /// @notice Stops new deposits of a token; balances can still be paid and withdrawn.
    function delist(IERC20 token) external onlyCurator {
        listed[token] = false;
        emit TokenDelisted(address(token));
    }

    /// @notice Deposits tokens that the caller has approved to this contract.
    function deposit(IERC20 token, uint256 amount) external {
        require(listed[token], "not listed");
        require(amount > 0, "nothing deposited");
        token.transferFrom(msg.sender, address(this), amount);
        balanceOf[token][msg.sender] += amount;
        totalHeld[token] += amount;
        emit Deposited(address(token), msg.sender, amount);
    }

    /// @notice Withdraws tokens of the caller.
    function withdraw(IERC20 token, uint256 amount) external {
        balanceOf[token][msg.sender] -= amount;
        totalHeld[token] -= amount;
        emit Withdrawn(address(token), msg.sender, amount);
        require(token.transfer(msg.sender, amount), "transfer failed");
    }

    /// @notice Moves balance of the caller to another account.
    function pay(IERC20 token, address to, uint256 amount) external {
        require(to != address(0), "zero address");
        balanceOf[token][msg.sender] -= amount;
        balanceOf[token][to] += amount;
        emit Paid(address(token), msg.sender, to, amount);
    }

    /// @notice Offers the curator's office to another account, which has to accept it.
    function offerCuratorship(address to) external onlyCurator {
        nextCurator = to;
    }

    function acceptCuratorship() external {
        require(msg.sender == nextCurator, "not offered");
        curator = msg.sender;
        delete nextCurator;
    }
}
