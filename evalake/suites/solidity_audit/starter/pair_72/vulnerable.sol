// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title LotTrade
/// @notice A seller lists a lot, a buyer reserves it with the full price, and either settles or cancels.
contract LotTrade {
    enum State {
        None,
        Listed,
        Reserved,
        Closed
    }

    struct Lot {
        address seller;
        address buyer;
        uint256 price;
        State state;
    }

    Lot[] public lots;

    event Listed(uint256 indexed id, address indexed seller, uint256 price);
    event Reserved(uint256 indexed id, address indexed buyer);
    event Settled(uint256 indexed id);
    event Cancelled(uint256 indexed id);

    error WrongState(State state);

    function list(uint256 price) external returns (uint256 id) {
        require(price > 0, "no price");
        id = lots.length;
        lots.push(Lot(msg.sender, address(0), price, State.Listed));
        emit Listed(id, msg.sender, price);
    }

    function reserve(uint256 id) external payable {
        Lot storage lot = lots[id];
        if (lot.state != State.Listed) revert WrongState(lot.state);
        require(msg.value == lot.price, "wrong price");
        lot.buyer = msg.sender;
        lot.state = State.Reserved;
        emit Reserved(id, msg.sender);
    }

    /// @notice The buyer confirms that the lot has come; the seller is paid.
    function settleLot(uint256 id) external {
        Lot storage lot = lots[id];
        if (lot.state != State.Reserved) revert WrongState(lot.state);
        require(msg.sender == lot.buyer, "not buyer");
        _pay(lot.seller, lot.price);
        lot.state = State.Closed;
        emit Settled(id);
    }

    /// @notice The seller gives up a reserved lot; the buyer gets the price back.
    function cancelLot(uint256 id) external {
        Lot storage lot = lots[id];
        if (lot.state != State.Reserved) revert WrongState(lot.state);
        require(msg.sender == lot.seller, "not seller");
        lot.state = State.Closed;
        emit Cancelled(id);
        _pay(lot.buyer, lot.price);
    }

    function _pay(address to, uint256 amount) private {
        (bool sent, ) = to.call{value: amount}("");
        require(sent, "transfer failed");
    }
}
