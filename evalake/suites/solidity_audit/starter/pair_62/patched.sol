// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title LaundryRoom
/// @notice Tenants reserve slots of two hours, twelve a day, up to four weeks ahead.
contract LaundryRoom {
    uint256 public constant SLOT = 2 hours;
    uint256 public constant DAYS_AHEAD = 28;
    uint256 public constant MAX_OPEN = 3;

    address public immutable office;
    mapping(address => bool) public isTenant;
    mapping(uint256 => address) public tenantOf;
    mapping(address => uint256) public openReservations;

    event Reserved(uint256 indexed slot, address indexed tenant);
    event Released(uint256 indexed slot, address indexed tenant);

    constructor() {
        office = msg.sender;
    }

    function setTenant(address account, bool active) external {
        require(msg.sender == office, "not office");
        isTenant[account] = active;
    }

    /// @notice The number of the running slot.
    function currentSlot() public view returns (uint256) {
        return block.timestamp / SLOT;
    }

    /// @notice Reserves a future slot.
    function reserve(uint256 slot) external {
        require(isTenant[msg.sender], "not a tenant");
        require(slot > currentSlot() && slot <= currentSlot() + DAYS_AHEAD * 12, "outside the calendar");
        require(tenantOf[slot] == address(0), "slot taken");
        require(openReservations[msg.sender] < MAX_OPEN, "too many reservations");
        tenantOf[slot] = msg.sender;
        openReservations[msg.sender] += 1;
        emit Reserved(slot, msg.sender);
    }

    /// @notice Gives a slot back, before or after its time; the office may release any.
    function release(uint256 slot) external {
        address tenant = tenantOf[slot];
        require(tenant != address(0), "slot free");
        require(msg.sender == tenant || msg.sender == office, "not yours");
        delete tenantOf[slot];
        openReservations[tenant] -= 1;
        emit Released(slot, tenant);
    }
}
