// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title VillageRun
/// @notice Runners enter for a fee until closesAt (exclusive); the field is final from closesAt on.
contract VillageRun {
    uint256 public constant FEE = 0.01 ether;
    uint256 public constant MAX_FIELD = 200;

    address public immutable host;
    uint256 public immutable closesAt;
    address[] private field;
    mapping(address => uint256) public bibOf;

    event Entered(address indexed runner, uint256 bib);
    event Withdrawn(address indexed runner);

    constructor(uint256 closesAt_) {
        require(closesAt_ > block.timestamp, "closes in the past");
        host = msg.sender;
        closesAt = closesAt_;
    }

    /// @notice Enters the race.
    function enter() external payable {
        require(block.timestamp <= closesAt, "entries closed");
        require(msg.value == FEE, "wrong fee");
        require(bibOf[msg.sender] == 0, "already entered");
        require(field.length < MAX_FIELD, "field full");
        field.push(msg.sender);
        bibOf[msg.sender] = field.length;
        emit Entered(msg.sender, field.length);
    }

    /// @notice Gives the fee back before the field is final; the bib stays empty.
    function withdraw() external {
        require(block.timestamp < closesAt, "field final");
        uint256 bib = bibOf[msg.sender];
        require(bib > 0, "not entered");
        bibOf[msg.sender] = 0;
        field[bib - 1] = address(0);
        emit Withdrawn(msg.sender);
        (bool sent, ) = msg.sender.call{value: FEE}("");
        require(sent, "transfer failed");
    }

    /// @notice The final field, from closesAt on.
    function finalField() external view returns (address[] memory) {
        require(block.timestamp >= closesAt, "field not final");
        return field;
    }

    function collect() external {
        require(block.timestamp >= closesAt, "field not final");
        (bool sent, ) = host.call{value: address(this).balance}("");
        require(sent, "transfer failed");
    }
}
