// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title TrailBadges
/// @notice Rangers record hikers' visits, one a day; ten visits earn a badge.
contract TrailBadges {
    uint256 public constant VISITS_FOR_BADGE = 10;

    address public immutable office;
    mapping(address => bool) public isRanger;
    mapping(address => bool) public isHiker;
    mapping(address => uint256) public visits;
    mapping(address => uint256) public lastVisitDay;
    mapping(address => bool) public hasBadge;

    event HikerRegistered(address indexed hiker);
    event VisitRecorded(address indexed hiker, uint256 visits);
    event BadgeEarned(address indexed hiker);

    modifier onlyRegistered(address hiker) {
        require(isHiker[hiker], "not registered");
        _;
    }

    modifier onlyRanger() {
        require(isRanger[msg.sender], "not ranger");
        _;
    }

    constructor() {
        office = msg.sender;
    }

    function setRanger(address account, bool active) external {
        require(msg.sender == office, "not office");
        isRanger[account] = active;
    }

    function register() external {
        require(!isHiker[msg.sender], "already registered");
        isHiker[msg.sender] = true;
        emit HikerRegistered(msg.sender);
    }

    /// @notice Records today's visit of a hiker.
    function recordVisit(address hiker) external onlyRegistered(hiker) {
        uint256 today = block.timestamp / 1 days;
        require(lastVisitDay[hiker] < today, "recorded already");
        lastVisitDay[hiker] = today;
        visits[hiker] += 1;
        emit VisitRecorded(hiker, visits[hiker]);
        if (visits[hiker] == VISITS_FOR_BADGE) {
            hasBadge[hiker] = true;
            emit BadgeEarned(hiker);
        }
    }
}
