// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title BirdCount
/// @notice Volunteers count birds; a day is closed with a total that enters the yearly record.
contract BirdCount {
    struct Day {
        uint256 total;
        bool closed;
    }

    address public immutable society;
    uint256 public recordTotal;
    uint256 public recordDay;
    mapping(address => bool) public isVolunteer;
    mapping(uint256 => Day) public dayOf;
    mapping(uint256 => mapping(address => uint256)) public countedBy;

    event VolunteerSet(address indexed account, bool active);
    event Counted(uint256 indexed day, address indexed volunteer, uint256 birds);
    event DayClosed(uint256 indexed day, uint256 total);

    constructor() {
        society = msg.sender;
    }

    function setVolunteer(address account, bool active) external {
        require(msg.sender == society, "not society");
        isVolunteer[account] = active;
        emit VolunteerSet(account, active);
    }

    /// @notice Number of the running day.
    function today() public view returns (uint256) {
        return block.timestamp / 1 days;
    }

    /// @notice Adds birds to the running day.
    function count(uint256 birds) external {
        require(isVolunteer[msg.sender], "not a volunteer");
        require(birds > 0 && birds <= 500, "unlikely");
        Day storage day = dayOf[today()];
        require(!day.closed, "day closed");
        day.total += birds;
        countedBy[today()][msg.sender] += birds;
        emit Counted(today(), msg.sender, birds);
    }

    /// @notice Closes a day and enters its total in the record.
    function closeDay(uint256 number) external {
        Day storage day = dayOf[number];
        require(number < today() && !day.closed && day.total > 0, "nothing to close");
        day.closed = true;
        if (day.total > recordTotal) {
            recordTotal = day.total;
            recordDay = number;
        }
        emit DayClosed(number, day.total);
    }
}
