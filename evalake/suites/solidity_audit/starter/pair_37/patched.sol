// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title CourseBooking
/// @notice Sells seats in courses; a booking can be cancelled until a day before the course starts.
contract CourseBooking {
    struct Course {
        uint256 price;
        uint256 seats;
        uint256 bookedSeats;
        uint256 startsAt;
        bool paidOut;
    }

    uint256 public constant CANCEL_BEFORE = 1 days;

    address public immutable school;
    Course[] public courses;
    mapping(uint256 => mapping(address => bool)) public hasBooked;

    event CourseOffered(uint256 indexed id, uint256 price, uint256 seats, uint256 startsAt);
    event Booked(uint256 indexed id, address indexed student);
    event Cancelled(uint256 indexed id, address indexed student);
    event PaidOut(uint256 indexed id, uint256 amount);

    modifier onlySchool() {
        require(msg.sender == school, "not school");
        _;
    }

    modifier existing(uint256 id) {
        require(id < courses.length, "no such course");
        _;
    }

    constructor() {
        school = msg.sender;
    }

    /// @notice Offers a course with a number of seats.
    function offer(uint256 price, uint256 seats, uint256 startsAt) external onlySchool returns (uint256 id) {
        require(seats > 0, "no seats");
        require(startsAt > block.timestamp + CANCEL_BEFORE, "starts too soon");
        id = courses.length;
        courses.push(Course(price, seats, 0, startsAt, false));
        emit CourseOffered(id, price, seats, startsAt);
    }

    /// @notice Books one seat for the caller.
    function book(uint256 id) external payable existing(id) {
        Course storage course = courses[id];
        require(block.timestamp < course.startsAt, "already started");
        require(!hasBooked[id][msg.sender], "already booked");
        require(course.bookedSeats < course.seats, "course full");
        require(msg.value == course.price, "wrong price");
        course.bookedSeats += 1;
        hasBooked[id][msg.sender] = true;
        emit Booked(id, msg.sender);
    }

    /// @notice Cancels the caller's booking and returns its price.
    function cancel(uint256 id) external existing(id) {
        Course storage course = courses[id];
        require(block.timestamp + CANCEL_BEFORE <= course.startsAt, "too late");
        require(hasBooked[id][msg.sender], "not booked");
        hasBooked[id][msg.sender] = false;
        course.bookedSeats -= 1;
        emit Cancelled(id, msg.sender);
        (bool sent, ) = msg.sender.call{value: course.price}("");
        require(sent, "transfer failed");
    }

    /// @notice Pays the price of all booked seats to the school once the course has started.
    function payOut(uint256 id) external onlySchool existing(id) {
        Course storage course = courses[id];
        require(block.timestamp >= course.startsAt, "not started");
        require(!course.paidOut, "already paid");
        course.paidOut = true;
        uint256 amount = course.price * course.bookedSeats;
        emit PaidOut(id, amount);
        (bool sent, ) = school.call{value: amount}("");
        require(sent, "transfer failed");
    }

    /// @notice Number of courses offered so far.
    function courseCount() external view returns (uint256) {
        return courses.length;
    }
}
