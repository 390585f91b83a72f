// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title ConcertDoor
/// @notice Admits guests with tickets that the box office signs; each place is taken once, dear halls pay a gift.
contract ConcertDoor {
    address public immutable boxOffice;
    address public immutable host;
    mapping(bytes32 => address) public guestAt;
    mapping(bytes32 => uint256) public giftOf;

    event GiftSet(string hall, uint256 amount);
    event Admitted(address indexed guest, string hall, string seat, uint256 gift);

    constructor(address boxOffice_) payable {
        boxOffice = boxOffice_;
        host = msg.sender;
    }

    /// @notice Sets the gift that guests of a hall receive at the door.
    function setGift(string calldata hall, uint256 amount) external {
        require(msg.sender == host, "not host");
        giftOf[keccak256(bytes(hall))] = amount;
        emit GiftSet(hall, amount);
    }

    /// @notice What the box office signs for a ticket.
    function ticketDigest(address guest, string calldata hall, string calldata seat) public view returns (bytes32) {
        return keccak256(abi.encodePacked(address(this), guest, hall, seat));
    }

    /// @notice Lets the caller in to a place and pays the gift of the hall.
    function admit(string calldata hall, string calldata seat, uint8 v, bytes32 r, bytes32 s) external {
        address signer = ecrecover(ticketDigest(msg.sender, hall, seat), v, r, s);
        require(signer != address(0) && signer == boxOffice, "no ticket");
        bytes32 place = keccak256(abi.encode(hall, seat));
        require(guestAt[place] == address(0), "place taken");
        guestAt[place] = msg.sender;
        uint256 gift = giftOf[keccak256(bytes(hall))];
        emit Admitted(msg.sender, hall, seat, gift);
        if (gift > 0) {
            (bool sent, ) = msg.sender.call{value: gift}("");
            require(sent, "transfer failed");
        }
    }

    function takeRest() external {
        require(msg.sender == host, "not host");
        (bool sent, ) = host.call{value: address(this).balance}("");
        require(sent, "transfer failed");
    }
}
