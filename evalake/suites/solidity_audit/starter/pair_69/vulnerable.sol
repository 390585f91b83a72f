// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IItemReceiver {
    function onItemReceived(uint256 id) external returns (bytes4);
}

/// @title PrintSale
/// @notice Sells a numbered edition of prints, two for each account. Contracts confirm that they can hold prints.
contract PrintSale {
    uint256 public constant PRICE = 0.03 ether;
    uint256 public constant LIMIT = 2;

    address public immutable artist;
    uint256 public immutable edition;
    uint256 public nextId;
    mapping(uint256 => address) public ownerOf;
    mapping(address => uint256) public minted;

    event Minted(uint256 indexed id, address indexed owner);
    event Moved(uint256 indexed id, address indexed from, address indexed to);

    constructor(uint256 edition_) {
        artist = msg.sender;
        edition = edition_;
    }

    /// @notice Buys the next print.
    function mint() external payable returns (uint256 id) {
        require(msg.value == PRICE, "wrong price");
        require(nextId < edition, "sold out");
        require(minted[msg.sender] < LIMIT, "limit reached");
        id = nextId++;
        ownerOf[id] = msg.sender;
        emit Minted(id, msg.sender);
        _confirm(msg.sender, id);
        minted[msg.sender] = minted[msg.sender] + 1;
    }

    function move(uint256 id, address to) external {
        require(ownerOf[id] == msg.sender, "not owner");
        require(to != address(0), "zero address");
        ownerOf[id] = to;
        emit Moved(id, msg.sender, to);
        _confirm(to, id);
    }

    function collect() external {
        (bool sent, ) = artist.call{value: address(this).balance}("");
        require(sent, "transfer failed");
    }

    function _confirm(address to, uint256 id) private {
        if (to.code.length > 0) {
            bytes4 answer = IItemReceiver(to).onItemReceived(id);
            require(answer == IItemReceiver.onItemReceived.selector, "cannot hold prints");
        }
    }
}
