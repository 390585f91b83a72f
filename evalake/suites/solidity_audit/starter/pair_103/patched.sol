// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title PaperZoo
/// @notice Adopts numbered paper animals for a small fee; one in sixteen has a golden look.
contract PaperZoo {
    struct Animal {
        address keeper;
        uint64 adoptedIn;
        uint8 look;
        bool drawn;
    }

    uint256 public constant FEE = 0.002 ether;
    uint256 public constant LOOKS = 16;

    address public immutable founder;
    Animal[] public animals;
    mapping(address => uint256) public countOf;

    event Adopted(uint256 indexed id, address indexed keeper);
    event Drawn(uint256 indexed id, uint8 look);
    event Given(uint256 indexed id, address indexed to);

    constructor() {
        founder = msg.sender;
    }

    /// @notice Adopts the next animal.
    function adopt() external payable returns (uint256 id) {
        require(msg.value == FEE, "wrong fee");
        id = animals.length;
        animals.push(Animal(msg.sender, uint64(block.number), 0, false));
        countOf[msg.sender] += 1;
        emit Adopted(id, msg.sender);
    }

    /// @notice Draws the look of an animal some blocks after its adoption.
    function draw(uint256 id) external {
        Animal storage animal = animals[id];
        require(!animal.drawn && block.number > animal.adoptedIn + 5, "not yet");
        bytes32 later = blockhash(animal.adoptedIn + 5);
        require(later != bytes32(0), "too late");
        _setLook(id, uint256(keccak256(abi.encode(later, id))));
    }

    function give(uint256 id, address to) external {
        require(animals[id].keeper == msg.sender && to != address(0), "cannot give");
        animals[id].keeper = to;
        countOf[msg.sender] -= 1;
        countOf[to] += 1;
        emit Given(id, to);
    }

    function collect() external {
        (bool sent, ) = founder.call{value: address(this).balance}("");
        require(sent, "transfer failed");
    }

    function _setLook(uint256 id, uint256 number) private {
        animals[id].look = uint8(number % LOOKS);
        animals[id].drawn = true;
        emit Drawn(id, animals[id].look);
    }
}
