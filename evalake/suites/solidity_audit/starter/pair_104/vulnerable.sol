// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title PotteryStall
/// @notice Potters offer pieces at a price that they may change while a piece is unsold.
contract PotteryStall {
    struct Piece {
        address potter;
        uint256 price;
        address buyer;
    }

    Piece[] public pieces;
    mapping(address => uint256) public earned;
    mapping(address => uint256) public piecesSold;

    event Offered(uint256 indexed id, address indexed potter, uint256 price);
    event PriceSet(uint256 indexed id, uint256 price);
    event Bought(uint256 indexed id, address indexed buyer, uint256 paid);

    function offer(uint256 price) external returns (uint256 id) {
        require(price > 0, "no price");
        id = pieces.length;
        pieces.push(Piece(msg.sender, price, address(0)));
        emit Offered(id, msg.sender, price);
    }

    /// @notice Changes the price of an unsold piece.
    function setPrice(uint256 id, uint256 price) external {
        Piece storage piece = pieces[id];
        require(msg.sender == piece.potter && piece.buyer == address(0), "cannot change");
        require(price > 0, "no price");
        piece.price = price;
        emit PriceSet(id, price);
    }

    /// @notice Buys a piece.
    /// @param maxPrice What the buyer expects to pay at most.
    function buy(uint256 id, uint256 maxPrice) external payable {
        Piece storage piece = pieces[id];
        require(piece.buyer == address(0), "sold");
        require(msg.value >= piece.price && msg.value >= maxPrice, "too little");
        piece.buyer = msg.sender;
        earned[piece.potter] += piece.price;
        piecesSold[piece.potter] += 1;
        emit Bought(id, msg.sender, piece.price);
        uint256 change = msg.value - piece.price;
        if (change > 0) {
            (bool returned, ) = msg.sender.call{value: change}("");
            require(returned, "transfer failed");
        }
    }

    function withdraw() external {
        uint256 amount = earned[msg.sender];
        require(amount > 0, "nothing earned");
        earned[msg.sender] = 0;
        (bool sent, ) = msg.sender.call{value: amount}("");
        require(sent, "transfer failed");
    }
}
