// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title AllotmentRegister
/// @notice Who rents which plot of a garden, and what its notice board says.
contract AllotmentRegister {
    struct Plot {
        address holder;
        uint256 paidUntil;
        string notice;
    }

    uint256 public constant RENT = 0.05 ether;
    uint256 public constant TERM = 180 days;
    uint256 public immutable plotCount;
    address public immutable association;
    mapping(uint256 => Plot) private plots;

    event Rented(uint256 indexed number, address indexed holder, uint256 paidUntil);
    event NoticeSet(uint256 indexed number, string notice);

    constructor(uint256 plotCount_) {
        plotCount = plotCount_;
        association = msg.sender;
    }

    /// @notice Rents a free plot, or renews the caller's.
    function rent(uint256 number) external payable {
        require(number < plotCount, "no such plot");
        require(msg.value == RENT, "wrong rent");
        Plot storage plot = plots[number];
        if (plot.holder == msg.sender && block.timestamp < plot.paidUntil) {
            plot.paidUntil += TERM;
        } else {
            require(block.timestamp >= plot.paidUntil, "plot taken");
            plots[number] = Plot(msg.sender, block.timestamp + TERM, "");
        }
        emit Rented(number, msg.sender, plot.paidUntil);
    }

    /// @notice Changes the notice of a plot.
    function setNotice(uint256 number, string calldata notice) external {
        require(block.timestamp < plots[number].paidUntil, "not rented");
        plots[number].notice = notice;
        emit NoticeSet(number, notice);
    }

    function collectRents() external {
        (bool sent, ) = association.call{value: address(this).balance}("");
        require(sent, "transfer failed");
    }

    function plotAt(uint256 number) external view returns (Plot memory) {
        return plots[number];
    }
}
