// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title StreetFestival
/// @notice Guests get claps with a wristband; claps either rank a band or, unused, become a small gift.
contract StreetFestival {
    uint256 public constant WRISTBAND = 0.02 ether;
    uint256 public constant CLAPS = 10;
    uint256 public constant GIFT_PER_CLAP = 0.00002 ether;

    address public immutable host;
    uint256 public immutable endsAt;
    mapping(address => uint256) public claps;
    mapping(bytes32 => uint256) public ranking;

    event Entered(address indexed guest);
    event Applauded(address indexed guest, bytes32 indexed band, uint256 claps);
    event GiftClaimed(address indexed guest, uint256 claps);

    constructor(uint256 duration) {
        host = msg.sender;
        endsAt = block.timestamp + duration;
    }

    function enter() external payable {
        require(block.timestamp < endsAt, "festival over");
        require(msg.value == WRISTBAND, "wrong price");
        claps[msg.sender] += CLAPS;
        emit Entered(msg.sender);
    }

    /// @notice Gives claps of the caller to a band.
    function applaud(bytes32 band, uint256 count) external {
        require(block.timestamp < endsAt, "festival over");
        require(claps[msg.sender] >= count, "too few claps");
        claps[msg.sender] -= count;
        ranking[band] += count;
        emit Applauded(msg.sender, band, count);
    }

    /// @notice Turns all claps of the caller into a gift.
    function claimGift() external {
        uint256 count = claps[msg.sender];
        require(count > 0, "no claps");
        (bool sent, ) = msg.sender.call{value: count * GIFT_PER_CLAP}("");
        require(sent, "transfer failed");
        claps[msg.sender] = 0;
        emit GiftClaimed(msg.sender, count);
    }

    function collect() external {
        require(block.timestamp >= endsAt + 7 days, "gifts open");
        (bool sent, ) = host.call{value: address(this).balance}("");
        require(sent, "transfer failed");
    }
}
