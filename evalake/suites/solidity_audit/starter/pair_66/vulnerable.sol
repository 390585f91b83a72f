// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title BottleShop
/// @notice Sells lemonade; each bottle carries a small deposit, at most one bottle is returned a day.
contract BottleShop {
    uint256 public constant PRICE = 0.002 ether;
    uint256 public constant DEPOSIT = 0.0001 ether;

    address public immutable keeper;
    uint256 public bottlesOut;
    uint256 public returnsToday;
    uint256 public today;
    mapping(address => uint256) public bottlesOf;

    event Bought(address indexed customer, uint256 bottles);
    event Returned(address indexed customer);

    constructor() {
        keeper = msg.sender;
    }

    /// @notice Buys bottles.
    function buy(uint256 bottles) external payable {
        require(msg.value == bottles * (PRICE + DEPOSIT), "wrong payment");
        bottlesOf[msg.sender] += bottles;
        bottlesOut += bottles;
        emit Bought(msg.sender, bottles);
    }

    /// @notice Returns one bottle; the shop takes twenty a day.
    function returnBottle() external {
        if (block.timestamp / 1 days != today) {
            today = block.timestamp / 1 days;
            returnsToday = 0;
        }
        require(returnsToday < 20, "come back tomorrow");
        returnsToday += 1;
        uint256 bottles = bottlesOf[msg.sender];
        require(bottles > 0, "no bottle out");
        (bool sent, ) = msg.sender.call{value: DEPOSIT}("");
        require(sent, "transfer failed");
        bottlesOf[msg.sender] = bottles - 1;
        emit Returned(msg.sender);
    }

    /// @notice Pays the keeper what is not needed for deposits.
    function collect() external {
        require(msg.sender == keeper, "not keeper");
        uint256 held = bottlesOut * DEPOSIT;
        (bool sent, ) = keeper.call{value: address(this).balance - held}("");
        require(sent, "transfer failed");
    }
}
