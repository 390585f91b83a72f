// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title TreasuryProxy
/// @notice Forwards every call to one implementation, chosen for good at construction.
contract TreasuryProxy {
    address private immutable implementation;

    /// @param implementation_ Contract that holds the code.
    /// @param setupCall Call made in the proxy's context right away, usually to initialize.
    constructor(address implementation_, bytes memory setupCall) {
        require(implementation_.code.length > 0, "no code");
        implementation = implementation_;
        (bool ok, ) = implementation_.delegatecall(setupCall);
        require(ok, "setup failed");
    }

    receive() external payable {}

    fallback() external payable {
        address target = implementation;
        assembly {
            calldatacopy(0, 0, calldatasize())
            let ok := delegatecall(gas(), target, 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            switch ok
            case 0 { revert(0, returndatasize()) }
            default { return(0, returndatasize()) }
        }
    }
}

/// @title TreasuryLogic
/// @notice Keeps an association's ether; a collector takes up to a limit a week, the owner decides on more.
contract TreasuryLogic {
    bool public initialized;
    address public owner;
    address public collector;
    uint256 public weeklyLimit;
    uint256 public currentWeek;
    uint256 public collectedThisWeek;

    event Initialized(address indexed owner, address indexed collector, uint256 weeklyLimit);
    event Collected(address indexed to, uint256 amount);
    event Granted(address indexed to, uint256 amount);
    event CollectorChanged(address indexed collector);

    modifier onlyOwner() {
        require(initialized && msg.sender == owner, "not owner");
        _;
    }

    /// @notice Sets owner, collector and weekly limit of a new treasury.
    function initialize(address owner_, address collector_, uint256 weeklyLimit_) external {
        require(owner_ != address(0), "zero owner");
        initialized = true;
        owner = owner_;
        collector = collector_;
        weeklyLimit = weeklyLimit_;
        emit Initialized(owner_, collector_, weeklyLimit_);
    }

    /// @notice Takes ether within the weekly limit.
    function collect(address payable to, uint256 amount) external {
        require(initialized && msg.sender == collector, "not collector");
        uint256 week = block.timestamp / 1 weeks;
        if (week != currentWeek) {
            currentWeek = week;
            collectedThisWeek = 0;
        }
        require(collectedThisWeek + amount <= weeklyLimit, "weekly limit");
        collectedThisWeek += amount;
        emit Collected(to, amount);
        _pay(to, amount);
    }

    /// @notice Pays a grant outside the weekly limit.
    function grant(address payable to, uint256 amount) external onlyOwner {
        emit Granted(to, amount);
        _pay(to, amount);
    }

    function setCollector(address newCollector) external onlyOwner {
        collector = newCollector;
        emit CollectorChanged(newCollector);
    }

    function setWeeklyLimit(uint256 limit) external onlyOwner {
        weeklyLimit = limit;
    }

    function transferOwnership(address to) external onlyOwner {
        require(to != address(0), "zero owner");
        owner = to;
    }

    function _pay(address payable to, uint256 amount) private {
        (bool sent, ) = to.call{value: amount}("");
        require(sent, "transfer failed");
    }
}
