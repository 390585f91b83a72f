// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
    function balanceOf(address account) external view returns (uint256);
}

/// @title GardenTokenSale
/// @notice Sells a token at a set price; buyers collect what they bought after the sale has closed.
contract GardenTokenSale {
    uint256 public constant TOKENS_PER_ETHER = 500;

    IERC20 public immutable token;
    address public immutable organiser;
    uint256 public immutable closesAt;
    uint256 public sold;
    mapping(address => uint256) public bought;

    event Bought(address indexed buyer, uint256 tokens);
    event Collected(address indexed buyer, uint256 tokens);
    event Rescued(address indexed token, address indexed to, uint256 amount);

    constructor(IERC20 token_, uint256 duration) {
        token = token_;
        organiser = msg.sender;
        closesAt = block.timestamp + duration;
    }

    function buy() external payable {
        require(block.timestamp < closesAt, "sale closed");
        uint256 tokens = msg.value * TOKENS_PER_ETHER;
        require(sold + tokens <= token.balanceOf(address(this)), "sold out");
        sold += tokens;
        bought[msg.sender] += tokens;
        emit Bought(msg.sender, tokens);
    }

    function collect() external {
        require(block.timestamp >= closesAt, "sale open");
        uint256 tokens = bought[msg.sender];
        require(tokens > 0, "nothing bought");
        bought[msg.sender] = 0;
        sold -= tokens;
        emit Collected(msg.sender, tokens);
        require(token.transfer(msg.sender, tokens), "transfer failed");
    }

    /// @notice Returns tokens that were sent here by mistake.
    function rescueTokens(IERC20 lost, address to, uint256 amount) external {
        require(msg.sender == organiser, "not organiser");
        require(lost != token, "sale token");
        emit Rescued(address(lost), to, amount);
        require(lost.transfer(to, amount), "transfer failed");
    }

    function withdrawProceeds() external {
        require(msg.sender == organiser, "not organiser");
        (bool sent, ) = organiser.call{value: address(this).balance}("");
        require(sent, "transfer failed");
    }
}
