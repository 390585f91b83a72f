// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IFeed {
    function decimals() external view returns (uint8);

    /// @return answer Wei for one dollar's worth, with `decimals` decimals.
    /// @return updatedAt Time of the report.
    function latest() external view returns (uint256 answer, uint256 updatedAt);
}

/// @title SurplusStore
/// @notice Sells numbered goods at dollar prices, paid in ether at the rate of a feed.
contract SurplusStore {
    uint256 public constant MAX_AGE = 2 hours;

    address public immutable keeper;
    IFeed public feed;
    uint256[] public dollarPrices;
    mapping(uint256 => address) public buyerOf;

    event FeedChanged(address feed);
    event Offered(uint256 indexed id, uint256 dollars);
    event Sold(uint256 indexed id, address indexed buyer, uint256 paid);

    constructor(IFeed feed_) {
        keeper = msg.sender;
        feed = feed_;
    }

    /// @notice Switches to another feed of ether per dollar.
    function setFeed(IFeed newFeed) external {
        require(msg.sender == keeper, "not keeper");
        feed = newFeed;
        emit FeedChanged(address(newFeed));
    }

    function offer(uint256 dollars) external {
        require(msg.sender == keeper && dollars > 0, "cannot offer");
        dollarPrices.push(dollars);
        emit Offered(dollarPrices.length - 1, dollars);
    }

    /// @notice Wei to be paid for a number of dollars.
    function quote(uint256 dollars) public view returns (uint256) {
        (uint256 answer, uint256 updatedAt) = feed.latest();
        require(answer > 0 && block.timestamp <= updatedAt + MAX_AGE, "no current rate");
        return (dollars * answer * 1e18) / 10 ** uint256(feed.decimals());
    }

    /// @notice Buys a good; at most `maxPaid` is taken, the rest comes back.
    function buy(uint256 id, uint256 maxPaid) external payable {
        require(buyerOf[id] == address(0), "sold");
        uint256 price = quote(dollarPrices[id]);
        require(price <= maxPaid && price <= msg.value, "too dear");
        buyerOf[id] = msg.sender;
        emit Sold(id, msg.sender, price);
        (bool sent, ) = msg.sender.call{value: msg.value - price}("");
        require(sent, "transfer failed");
    }

    function collect() external {
        (bool sent, ) = keeper.call{value: address(this).balance}("");
        require(sent, "transfer failed");
    }
}
