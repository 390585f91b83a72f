// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

/// @title PositionBook
/// @notice Keeps token positions that can be transferred and managed by approved accounts.
/// @dev The token takes no transfer fee and returns true on success.
contract PositionBook {
    struct Position {
        address holder;
        uint256 amount;
        uint256 openedAt;
    }

    uint256 public constant MIN_AGE = 1 hours;

    IERC20 public immutable token;
    uint256 public nextId = 1;

    mapping(uint256 => Position) public positions;
    mapping(uint256 => address) public approvedFor;
    mapping(address => mapping(address => bool)) public operators;

    event Opened(uint256 indexed id, address indexed holder, uint256 amount);
    event Increased(uint256 indexed id, uint256 amount);
    event Withdrawn(uint256 indexed id, address indexed to, uint256 amount);
    event Transferred(uint256 indexed id, address indexed from, address indexed to);
    event Approved(uint256 indexed id, address indexed spender);
    event OperatorSet(address indexed holder, address indexed operator, bool allowed);

    error NotAuthorized(address caller, uint256 id);
    error NotHolder(address caller, uint256 id);
    error TooYoung(uint256 id);

    modifier onlyAuthorized(uint256 id) {
        if (!isAuthorized(msg.sender, id)) revert NotAuthorized(msg.sender, id);
        _;
    }

    constructor(IERC20 token_) {
        token = token_;
    }

    /// @notice Opens a position with tokens of the caller.
    function open(uint256 amount) external returns (uint256 id) {
        require(amount > 0, "nothing deposited");
        id = nextId++;
        positions[id] = Position(msg.sender, amount, block.timestamp);
        emit Opened(id, msg.sender, amount);
        require(token.transferFrom(msg.sender, address(this), amount), "transfer failed");
    }

    /// @notice Adds tokens of the caller to any existing position.
    function increase(uint256 id, uint256 amount) external {
        require(positions[id].holder != address(0), "no such position");
        positions[id].amount += amount;
        emit Increased(id, amount);
        require(token.transferFrom(msg.sender, address(this), amount), "transfer failed");
    }

    /// @notice Takes tokens out of a position.
    function withdraw(uint256 id, uint256 amount, address to) external onlyAuthorized(id) {
        Position storage position = positions[id];
        if (block.timestamp < position.openedAt + MIN_AGE) revert TooYoung(id);
        position.amount -= amount;
        emit Withdrawn(id, to, amount);
        require(token.transfer(to, amount), "transfer failed");
    }

    /// @notice Gives a position to another holder and clears its approval.
    function transferPosition(uint256 id, address to) external onlyAuthorized(id) {
        require(to != address(0), "zero address");
        address from = positions[id].holder;
        positions[id].holder = to;
        delete approvedFor[id];
        emit Transferred(id, from, to);
    }

    /// @notice Approves one account for one position; only the holder may do so.
    function approve(uint256 id, address spender) external {
        if (positions[id].holder != msg.sender) revert NotHolder(msg.sender, id);
        approvedFor[id] = spender;
        emit Approved(id, spender);
    }

    /// @notice Allows or forbids an account to manage all positions of the caller.
    function setOperator(address operator, bool allowed) external {
        require(operator != msg.sender, "own account");
        operators[msg.sender][operator] = allowed;
        emit OperatorSet(msg.sender, operator, allowed);
    }

    /// @notice Whether an account may manage a position.
    function isAuthorized(address spender, uint256 id) public view returns (bool) {
        address holder = positions[id].holder;
        if (holder == address(0)) {
            return false;
        }
        return spender == holder || approvedFor[id] == spender || operators[spender][holder];
    }
}
